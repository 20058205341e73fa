// SPDX-License-Identifier: MIT
//
// map, filter and take, for each item of the source: pulled with `co_await next()` and by a sink,
// from iota and from a generator function.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

weir::stream<std::int64_t> naturals() {
  for (std::int64_t i = 0;; ++i) co_yield i;
}

auto counting() { return weir::iota(std::int64_t{0}); }

// Half of the mapped numbers are even, so `size` items of the source give size / 2.
template <class Source>
auto pipeline(Source source, std::int64_t size) {
  return std::move(source) | weir::map([](std::int64_t i) { return 3 * i; }) |
         weir::filter([](std::int64_t i) { return i % 2 == 0; }) | weir::take(size / 2);
}

template <class Make>
weir::task<std::int64_t> sum_by_next(Make make, std::int64_t size) {
  auto items = pipeline(make(), size);
  std::int64_t sum = 0;
  for (;;) {
    auto item = co_await items.next();
    if (!item) break;
    sum += *item;
  }
  co_return sum;
}

template <class Make>
weir::task<std::int64_t> sum_by_sink(Make make, std::int64_t size) {
  auto add = [](std::int64_t sum, std::int64_t item) { return sum + item; };
  co_return co_await (pipeline(make(), size) | weir::fold(std::int64_t{0}, add));
}

template <class F>
weir::task<> measure(const char* row, F run_once, std::int64_t size) {
  bench::samples each;
  for (int round = 0; round <= rounds; ++round) {
    const auto start = bench::clock::now();
    std::int64_t sum = co_await run_once();
    const double cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    bench::keep(sum);
    if (sum != 6 * (size / 2) * (size / 2 - 1) / 2) std::abort();
    if (round > 0) each.add(cost);
  }
  bench::report(row, size, each.median(), "ns");
}

weir::task<> measure_all(std::int64_t size) {
  co_await measure("next_iota", [=] { return sum_by_next(counting, size); }, size);
  co_await measure("next_generator", [=] { return sum_by_next(naturals, size); }, size);
  co_await measure("sink_iota", [=] { return sum_by_sink(counting, size); }, size);
  co_await measure("sink_generator", [=] { return sum_by_sink(naturals, size); }, size);
}

}  // namespace

int main(int argc, char** argv) { weir::run(measure_all(bench::size_argument(argc, argv))); }
