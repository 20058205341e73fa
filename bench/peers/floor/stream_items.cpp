// SPDX-License-Identifier: MIT
//
// The floor of a pipeline: the loop that one writes by hand, over numbers and over a generator
// without errors, waiting or cancellation.
#include <coroutine>
#include <exception>
#include <utility>

#include "peers/floor/frames.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

class bare_generator {
 public:
  struct promise_type : bench::cached_frame {
    bare_generator get_return_object() {
      return bare_generator(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(std::int64_t next) noexcept {
      value = next;
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }

    std::int64_t value = 0;
  };

  bare_generator(bare_generator&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  ~bare_generator() {
    if (frame_) frame_.destroy();
  }
  std::int64_t next() {
    frame_.resume();
    return frame_.promise().value;
  }

 private:
  explicit bare_generator(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

[[gnu::noinline]] bare_generator naturals() {
  for (std::int64_t i = 0;; ++i) co_yield i;
}

// Like the pipelines, it ends after so many even numbers.
template <class Next>
std::int64_t sum_up(Next next, std::int64_t wanted) {
  std::int64_t sum = 0;
  for (std::int64_t taken = 0; taken < wanted;) {
    const std::int64_t item = 3 * next();
    if (item % 2 != 0) continue;
    sum += item;
    ++taken;
  }
  return sum;
}

std::int64_t sum_of_numbers(std::int64_t size) {
  std::int64_t i = 0;
  return sum_up([&] { return i++; }, size / 2);
}

std::int64_t sum_of_generator(std::int64_t size) {
  bare_generator all = naturals();
  return sum_up([&] { return all.next(); }, size / 2);
}

double measure(std::int64_t (*run_once)(std::int64_t), std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    bench::keep(size);
    const auto start = bench::clock::now();
    std::int64_t sum = run_once(size);
    bench::keep(sum);
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    if (round > 0) each.add(cost);
  }
  return each.median();
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  bench::report("sink_iota", size, measure(sum_of_numbers, size), "ns");
  bench::report("sink_generator", size, measure(sum_of_generator, size), "ns");
}
