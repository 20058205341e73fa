// SPDX-License-Identifier: MIT
//
// A plain call on a thread of the blocking pool and its value back: one after the other, and with
// 64 callers.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

weir::task<> call(std::int64_t& left) {
  std::int64_t value = 0;
  while (left-- > 0) value = co_await weir::blocking([&] { return value + 1; });
  bench::keep(value);
}

weir::task<> travel(const char* row, int callers, std::int64_t size) {
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t left = size;
    const bench::stopwatch watch;
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      for (int i = 0; i < callers; ++i) s.spawn(call(left));
      co_return;
    });
    if (round > 0) each.add(watch.per(size));
  }
  each.report(row, size);
}

weir::task<> travel_both(std::int64_t size) {
  co_await travel("blocking_trip", 1, size);
  co_await travel("blocking_64", 64, size);
}

}  // namespace

int main(int argc, char** argv) { weir::run(travel_both(bench::size_argument(argc, argv))); }
