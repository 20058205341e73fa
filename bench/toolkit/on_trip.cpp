// SPDX-License-Identifier: MIT
//
// An operation on the loop of another thread and its value back: two messages and, if a side fell
// asleep meanwhile, its wake-up. One after the other, and with 64 callers.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

weir::task<std::int64_t> next_after(std::int64_t value) { co_return value + 1; }

weir::task<> call(weir::loop_thread& there, std::int64_t& left) {
  std::int64_t value = 0;
  while (left-- > 0) value = co_await weir::on(there, [&] { return next_after(value); });
  bench::keep(value);
}

weir::task<> travel(const char* row, weir::loop_thread& there, int callers, std::int64_t size) {
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t left = size;
    const bench::stopwatch watch;
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      for (int i = 0; i < callers; ++i) s.spawn(call(there, left));
      co_return;
    });
    if (round > 0) each.add(watch.per(size));
  }
  each.report(row, size);
}

weir::task<> travel_both(weir::loop_thread& there, std::int64_t size) {
  co_await travel("on_trip", there, 1, size);
  co_await travel("on_64", there, 64, size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  weir::run(
      weir::with_loop_thread([&](weir::loop_thread& there) { return travel_both(there, size); }));
}
