// SPDX-License-Identifier: MIT
// Interoperation: callbacks of other libraries, other threads, and std::stop_token.

#include <cstdio>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

/// Stands for a library with callbacks: calls back on its own thread, unless it is stopped.
class foreign_timer {
 public:
  void start(std::chrono::milliseconds delay, std::function<void(int)> done) {
    called_ = false;
    thread_ = std::jthread([this, delay, done = std::move(done)](const std::stop_token& stop) {
      const auto until = std::chrono::steady_clock::now() + delay;
      while (std::chrono::steady_clock::now() < until) {
        if (stop.stop_requested()) return;
        std::this_thread::yield();
      }
      called_ = true;
      done(42);
    });
  }
  /// When it returns, the callback was called (false) or will not be called (true).
  bool stop() {
    thread_.request_stop();
    thread_.join();
    return !called_;
  }

 private:
  bool called_ = false;  // read after the thread was joined
  std::jthread thread_;
};

// `start` is called when the wait begins and hands the resumer to the other side, which answers
// once, on any thread. What `start` returns is called if the fiber is cancelled: `done` if there
// will be no answer, `no` if the answer must be awaited.
task<int> wait_for(foreign_timer& timer, std::chrono::milliseconds delay) {
  auto start = [&](weir::resumer<int> answer) {
    timer.start(delay, [answer](int value) mutable { answer.complete(value); });
    return [&] { return timer.stop() ? weir::cancel_result::done : weir::cancel_result::no; };
  };
  co_return co_await weir::suspend<int>(start);
}

task<> callbacks() {
  foreign_timer timer;
  say("the callback said " + std::to_string(co_await wait_for(timer, 1ms)));
  const auto out = co_await weir::settle(weir::with_timeout(1ms, wait_for(timer, 1h)));
  say(out.is_error() ? "stopped by the time limit" : "answered?");
}

// A token may be fired from any thread, also after the loop has ended.
task<> another_thread_cancels() {
  weir::cancel_source source;
  const std::jthread operators_console([source]() mutable { source.cancel("operator"); });
  const auto out = co_await weir::settle(weir::with_token(source.token(), weir::sleep(1h)));
  say(std::string("cancelled: ") + out.reason().message);
}

// Everything else crosses threads as a message to the loop. The guard says that a message will
// come, so that a loop in which nothing else can happen is not taken for a deadlock.
task<> another_thread_posts() {
  std::jthread worker;
  auto start = [&](weir::resumer<std::string> answer) {
    const weir::loop_ref home = weir::this_loop();
    worker = std::jthread([home, answer, guard = home.keep_alive()] {
      home.post([answer]() mutable { answer.complete("posted, and run on the loop's thread"); });
    });
  };
  say(co_await weir::suspend<std::string>(start));
}

int search(const std::stop_token& stop) {
  int rounds = 0;
  while (!stop.stop_requested() && rounds < 10) ++rounds;
  return rounds;
}

// In both directions: a std token for code that polls one, and an operation under a std token.
task<> std_tokens() {
  auto polls = [](weir::context& self) -> task<int> { co_return search(self.stop_token()); };
  const auto rounds = co_await weir::settle(polls);
  say("rounds without a stop: " + std::to_string(rounds.value()));

  std::stop_source stop;
  stop.request_stop();
  const auto out = co_await weir::settle(weir::with_token(weir::link(stop.get_token()), polls));
  say(out.is_cancelled() ? "stopped before it began" : "ran?");
}

task<> program() {
  std::puts("callbacks");
  co_await callbacks();
  std::puts("threads");
  co_await another_thread_cancels();
  co_await another_thread_posts();
  std::puts("std tokens");
  co_await std_tokens();
}

}  // namespace

int main() { weir::run(program()); }
