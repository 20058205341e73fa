// SPDX-License-Identifier: MIT
// SIGQUIT prints the trees of all loops of the process, not only that of the loop that handles
// signals. Each test sends its signals in a process of its own.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

[[noreturn]] void leave(bool shown) {
  std::fflush(nullptr);
  ::_exit(shown ? 0 : 1);
}

/// What the process writes to its stderr.
class own_errors {
 public:
  own_errors() {
    if (::pipe2(ends_, O_NONBLOCK) != 0) leave(false);
    before_ = ::dup(STDERR_FILENO);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  ~own_errors() { ::dup2(before_, STDERR_FILENO); }
  const std::string& read() {
    char buffer[4096];
    for (ssize_t n; (n = ::read(ends_[0], buffer, sizeof buffer)) > 0;)
      text_.append(buffer, static_cast<std::size_t>(n));
    return text_;
  }

 private:
  int ends_[2];
  int before_;
  std::string text_;
};

long count(const std::string& text, std::string_view part) {
  long n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

/// A loop on a thread of its own, with a scope and a fiber that sleeps.
task<> keep_watch(const char* scope, std::atomic<int>& ready, const std::atomic<bool>& stop) {
  co_await weir::with_scope({.name = scope}, [&](weir::scope& s) -> task<> {
    auto keeper = s.spawn(after(1h, 1), {.name = "keeper"});
    co_await weir::yield();
    ++ready;
    while (!stop) co_await weir::sleep(1ms);
    keeper.cancel();
  });
}

void all_loops_are_printed() {
  std::atomic<int> ready{0};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    weir::run({.name = "harbour"}, [&]() -> task<> { co_await keep_watch("quay", ready, stop); });
  });
  // Two loops handle signals: one of them prints, once.
  std::thread third([&] {
    weir::run({.name = "island", .handle_signals = true},
              [&]() -> task<> { co_await keep_watch("cliff", ready, stop); });
  });
  own_errors errors;
  weir::run({.name = "app", .handle_signals = true}, [&]() -> task<> {
    co_await weir::with_scope({.name = "lighthouse"}, [&](weir::scope&) -> task<> {
      while (ready < 2) co_await weir::sleep(1ms);
      ::kill(::getpid(), SIGQUIT);
      while (count(errors.read(), "loop \'") < 3) co_await weir::sleep(1ms);
      stop = true;
    });
  });
  other.join();
  third.join();
  const std::string& text = errors.read();
  leave(contains(text, "lighthouse") && contains(text, "quay") && contains(text, "cliff") &&
        count(text, "keeper") == 2 && count(text, "loop \'app\'") == 1 &&
        count(text, "loop \'harbour\'") == 1);
}

void a_busy_loop_is_said_to_be_silent() {
  std::atomic<int> busy{0};
  std::atomic<bool> stop{false};
  auto turn = [&]() -> task<> {
    ++busy;
    while (!stop) std::this_thread::yield();  // never back to its loop
    co_return;
  };
  std::thread one([&] { weir::run({.name = "stuck"}, turn); });
  std::thread two([&] { weir::run({.name = "stuck too"}, turn); });
  own_errors errors;
  bool went_on = false;
  weir::run({.name = "app", .handle_signals = true}, [&]() -> task<> {
    while (busy < 2) co_await weir::sleep(1ms);
    ::kill(::getpid(), SIGQUIT);
    while (count(errors.read(), "loop \'") < 3) co_await weir::sleep(1ms);
    went_on = true;
    stop = true;
  });
  one.join();
  two.join();
  const std::string& text = errors.read();
  leave(went_on && contains(text, "loop \'app\':") && contains(text, "loop \'stuck\' is silent") &&
        contains(text, "loop \'stuck too\' is silent"));
}

}  // namespace

TEST(signal_threads_death, sigquit_prints_all_loops_once) {
  EXPECT_EXIT(all_loops_are_printed(), testing::ExitedWithCode(0), "");
}

TEST(signal_threads_death, a_loop_that_does_not_answer_is_named_and_the_program_goes_on) {
  EXPECT_EXIT(a_busy_loop_is_said_to_be_silent(), testing::ExitedWithCode(0), "");
}
