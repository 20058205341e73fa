// SPDX-License-Identifier: MIT
//
// The floor of awaiting a ready task: symmetric transfer there and back and a cached frame, without
// errors, cancellation, a bounded stack or an await chain to show.
#include <coroutine>
#include <exception>
#include <utility>

#include "peers/floor/frames.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

class bare_task {
 public:
  struct promise_type : bench::cached_frame {
    struct to_parent {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
        return done.promise().parent;
      }
      void await_resume() noexcept {}
    };

    bare_task get_return_object() {
      return bare_task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    to_parent final_suspend() noexcept { return {}; }
    void return_value(std::int64_t value) noexcept { result = value; }
    void unhandled_exception() noexcept { std::terminate(); }

    std::coroutine_handle<> parent = std::noop_coroutine();
    std::int64_t result = 0;
  };

  bare_task(bare_task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  ~bare_task() {
    if (frame_) frame_.destroy();
  }

  bool await_ready() noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
    frame_.promise().parent = parent;
    return frame_;
  }
  std::int64_t await_resume() noexcept { return frame_.promise().result; }

  void start() { frame_.resume(); }

 private:
  explicit bare_task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

[[gnu::noinline]] bare_task ready(std::int64_t value) { co_return value; }

bare_task await_many(std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const auto start = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) sum += co_await ready(i);
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  bench::report("await_ready", size, each.median(), "ns");
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) { await_many(bench::size_argument(argc, argv)).start(); }
