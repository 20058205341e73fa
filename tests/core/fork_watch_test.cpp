// SPDX-License-Identifier: MIT
// What a forked child shares with its parent, and what it must not. Promise: a child does not steal
// wake-ups.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "core/door.hpp"
#include "core/fork_watch.hpp"

using weir::detail::bell;
using weir::detail::fork_watch;
using weir::detail::process_mark;

namespace {

/// The status of a child that gives the result of `f`.
int in_child(const std::function<int()>& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

bool rings(const bell& b) {
  pollfd ready{b.number(), POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

void ring(const bell& b) {
  const std::uint64_t one = 1;
  EXPECT_EQ(::write(b.number(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
}

class counted_watch final : public fork_watch {
 public:
  counted_watch() { watch(weir::detail::no_forks()); }
  counted_watch(const counted_watch&) = delete;
  counted_watch& operator=(const counted_watch&) = delete;
  ~counted_watch() { unwatch(weir::detail::no_forks()); }
  void in_child() noexcept override { ++given_up; }
  int given_up = 0;
};

}  // namespace

TEST(fork, a_child_neither_hears_nor_takes_nor_rings_the_bell_of_its_parent) {
  const bell b("loop");
  ring(b);
  EXPECT_EQ(in_child([&] {
              std::uint64_t taken = 0;
              if (rings(b)) return 1;
              if (::read(b.number(), &taken, sizeof taken) >= 0) return 2;
              return 0;
            }),
            0);
  EXPECT_TRUE(rings(b));
  std::uint64_t taken = 0;
  EXPECT_EQ(::read(b.number(), &taken, sizeof taken), static_cast<ssize_t>(sizeof taken));
  EXPECT_EQ(taken, 1u);
  EXPECT_EQ(in_child([&] {
              ring(b);
              return rings(b) ? 0 : 1;  // its own
            }),
            0);
  EXPECT_FALSE(rings(b));
}

TEST(fork, a_bell_of_a_child_is_closed_on_exec_too) {
  const bell b("loop");
  EXPECT_EQ(in_child([&] { return ::fcntl(b.number(), F_GETFD) == FD_CLOEXEC ? 0 : 1; }), 0);
}

TEST(fork, everything_that_is_watched_is_given_up_once_and_only_in_the_child) {
  counted_watch first;
  counted_watch second;
  {
    const counted_watch gone;
  }
  const counted_watch third;
  EXPECT_EQ(in_child([&] { return first.given_up + 4 * second.given_up + 16 * third.given_up; }),
            1 + 4 + 16);
  EXPECT_EQ(first.given_up, 0);
}

TEST(fork, a_process_knows_that_it_was_forked_off) {
  const process_mark here;
  EXPECT_EQ(in_child([&] {
              const process_mark there;
              if (here.is_here() || !there.is_here()) return 1;
              return in_child([&] { return there.is_here() || here.is_here() ? 2 : 0; });
            }),
            0);
  EXPECT_TRUE(here.is_here());
}

namespace {

/// What a child does with a bell that it could not replace: it may only close what is its own.
int end_bell_without_files(std::optional<bell>& b, const rlimit& usual) {
  ::setrlimit(RLIMIT_NOFILE, &usual);
  if (b->number() != -1) return 1;
  const int other = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int another = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  b.reset();
  const bool open = ::fcntl(other, F_GETFD) >= 0 && ::fcntl(another, F_GETFD) >= 0;
  return open ? 0 : 2;
}

}  // namespace

// The limit is set in a child, which has one thread: other threads of the test program, and a
// sanitizer's checks in them, need files of their own.
TEST(fork, a_child_without_files_for_a_bell_of_its_own_closes_none_of_others) {
  std::optional<bell> b(std::in_place, "loop");
  EXPECT_EQ(in_child([&] {
              rlimit usual{};
              if (::getrlimit(RLIMIT_NOFILE, &usual) != 0) return 3;
              rlimit none = usual;
              none.rlim_cur = 0;
              if (::setrlimit(RLIMIT_NOFILE, &none) != 0) return 4;
              return in_child([&] { return end_bell_without_files(b, usual); });
            }),
            0);
}
