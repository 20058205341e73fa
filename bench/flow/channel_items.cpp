// SPDX-License-Identifier: MIT
//
// One thread sends, this one receives, through a channel with room for 1024: first from a loop,
// which waits for room, then from a thread without one, which tries again.
#include <weir/weir.hpp>

#include <thread>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;
constexpr int capacity = 1024;

using numbers = weir::sender<std::int64_t>;

weir::task<> send_all(numbers out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) co_await out.send(i);
}

void send_from_loop(numbers out, std::int64_t size) { weir::run(send_all(std::move(out), size)); }

void send_from_thread(numbers out, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    while (out.try_send(i).full()) std::this_thread::yield();
  }
}

// The clock runs from the first item on: making a thread is not what is measured.
weir::task<double> receive_all(void (*send)(numbers, std::int64_t), std::int64_t size) {
  auto [out, in] = weir::channel<std::int64_t>(capacity);
  std::jthread producer(send, std::move(out), size + 1);
  co_await in.next();
  std::int64_t sum = 0;
  const auto start = bench::clock::now();
  for (;;) {
    auto value = co_await in.next();
    if (!value) break;
    sum += *value;
  }
  const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
  if (sum != size * (size + 1) / 2) std::abort();
  co_return cost;
}

weir::task<> measure(const char* row, void (*send)(numbers, std::int64_t), std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const double cost = co_await receive_all(send, size);
    if (round > 0) each.add(cost);
  }
  bench::report(row, size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(measure("channel_items", send_from_loop, size));
  weir::run(measure("channel_thread", send_from_thread, size));
}
