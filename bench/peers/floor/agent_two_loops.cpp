// SPDX-License-Identifier: MIT
//
// The least that a round trip between two threads can take: each looks at a word, without pause,
// until the other one has written it.
#include <atomic>
#include <cstdint>
#include <thread>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

struct word {
  void await(std::int64_t value) const {
    while (value_.load(std::memory_order_acquire) != value) {
    }
  }
  void write(std::int64_t value) { value_.store(value, std::memory_order_release); }
  alignas(128) std::atomic<std::int64_t> value_{0};
};

double play(std::int64_t size) {
  word there;
  word back;
  std::jthread other([&] {
    for (std::int64_t i = 1; i <= size; ++i) {
      there.await(i);
      back.write(i);
    }
  });
  there.write(1);
  back.await(1);  // the other thread has begun
  const auto start = bench::clock::now();
  for (std::int64_t i = 2; i <= size; ++i) {
    there.write(i);
    back.await(i);
  }
  return bench::nanoseconds_since(start) / static_cast<double>(size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const double cost = play(size);
    if (round > 0) each.add(cost);
  }
  bench::report("agent_two_loops", size, each.median(), "ns");
}
