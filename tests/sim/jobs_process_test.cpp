// SPDX-License-Identifier: MIT
// explore with .jobs and the system under it: processes that cannot be made, that are killed, and
// that leave others behind.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

#include "sim_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;

namespace {

constexpr int highest_descriptor = 256;
constexpr uid_t nobody = 65534;

/// Not by /proc: a process that changed its user may not look there.
std::set<int> open_descriptors() {
  std::set<int> found;
  for (int fd = 0; fd < highest_descriptor; ++fd)
    if (::fcntl(fd, F_GETFD) != -1) found.insert(fd);
  return found;
}

bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD; }

void set_limit(decltype(RLIMIT_NOFILE) what, rlim_t to) {
  const rlimit limit{to, to};
  if (::setrlimit(what, &limit) != 0) std::perror("setrlimit");
}

/// Explores in 40 processes, which some limit forbids; exits with 0 if that is a system_error that
/// leaves neither processes nor descriptors.
[[noreturn]] void explore_beyond_the_limit() {
  const auto before = open_descriptors();
  const auto error = thrown_by([] {
    return sim::explore({.runs = 100'000, .jobs = 40}, [] { return conversation(2, 50); });
  });
  const auto after = open_descriptors();
  std::fprintf(stderr, "error '%s', descriptors %zu and %zu\n", what_of(error).c_str(),
               before.size(), after.size());
  const bool clean = holds<std::system_error>(error) && !has_children() && before == after;
  ::_exit(clean ? 0 : 1);
}

[[noreturn, maybe_unused]] void explore_with_few_descriptors() {
  // New descriptors are the lowest free ones, so the limit leaves room for a few of them only.
  set_limit(RLIMIT_NOFILE, 12);
  explore_beyond_the_limit();
}

[[noreturn]] void explore_with_few_processes() {
  // The limit does not hold for root.
  if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) std::perror("setresuid");
  set_limit(RLIMIT_NPROC, 8);
  explore_beyond_the_limit();
}

/// In a process of explore: says something through its pipe. `known` are the descriptors that were
/// open before: whatever they lead to (the test may have inherited some), it is not explore's.
void say_to_the_parent(std::string_view word, const std::set<int>& known) {
  for (int fd = 0; fd < highest_descriptor; ++fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags == -1 || (flags & O_ACCMODE) != O_WRONLY || known.contains(fd)) continue;
    EXPECT_EQ(::write(fd, word.data(), word.size()), static_cast<ssize_t>(word.size()));
  }
}

class pipe_ends {
 public:
  pipe_ends() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    close_writer();
    ::close(ends_[0]);
  }
  void close_writer() noexcept {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  /// Nobody writes; whether somebody still could.
  bool has_writer() const noexcept { return look(0) == 0; }
  void wait_for_the_end() const noexcept { (void)look(-1); }

 private:
  int look(int patience_ms) const noexcept {
    pollfd reader{ends_[0], POLLIN, 0};
    return ::poll(&reader, 1, patience_ms);
  }
  int ends_[2] = {-1, -1};
};

}  // namespace

// UndefinedBehaviorSanitizer looks at memory through pipes of its own, and takes those that it
// cannot make for broken objects.
#if !WEIR_TEST_ASAN
TEST(jobs, a_pipe_that_cannot_be_made_leaves_no_process_and_no_descriptor) {
  EXPECT_EXIT(explore_with_few_descriptors(), testing::ExitedWithCode(0), "pipe");
}
#endif

TEST(jobs, a_process_that_cannot_be_made_leaves_no_process_and_no_descriptor) {
  EXPECT_EXIT(explore_with_few_processes(), testing::ExitedWithCode(0), "fork");
}

TEST(jobs, a_process_that_the_program_started_is_not_waited_for) {
  // The program's process lives as long as the leash has a writer, which is only this test.
  pipe_ends leash, life;
  bool first = true;
  const auto report = sim::explore({.runs = 4, .jobs = 2}, [&]() -> task<> {
    if (std::exchange(first, false) && ::fork() == 0) {
      leash.close_writer();
      leash.wait_for_the_end();
      ::_exit(0);
    }
    co_await weir::yield();
  });
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_EQ(report.runs(), 4);
  life.close_writer();
  EXPECT_TRUE(life.has_writer());
  leash.close_writer();
  life.wait_for_the_end();
}

TEST(jobs, a_child_that_is_killed_is_a_failing_run_with_its_seed_and_signal) {
  const auto fatal = number_of(17);
  const auto report = sim::explore({.runs = 40, .jobs = 2}, [&]() -> task<> {
    co_await weir::yield();
    if (weir::random() == fatal) ::kill(::getpid(), SIGKILL);
  });
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.failures(), 1);
  EXPECT_EQ(report.seed(), 17U);
  EXPECT_TRUE(contains(report.message(), "signal " + std::to_string(SIGKILL))) << report;
  EXPECT_FALSE(has_children());
}

TEST(jobs, a_child_that_is_killed_in_the_middle_of_a_word_is_not_believed) {
  const auto known = open_descriptors();
  for (const std::string_view word : {"y", "y1", "y1:", "n5:half", "m99999999999999999999:0 x"}) {
    SCOPED_TRACE(word);
    const auto report = sim::explore({.runs = 2, .jobs = 2}, [&]() -> task<> {
      say_to_the_parent(word, known);
      ::kill(::getpid(), SIGKILL);
      co_return;
    });
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.seed(), 0U);
    EXPECT_TRUE(contains(report.message(), "signal " + std::to_string(SIGKILL))) << report;
  }
}
