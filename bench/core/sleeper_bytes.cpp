// SPDX-License-Identifier: MIT
//
// Memory of a fiber asleep: its record, its frame and the timer inside the frame.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

weir::task<> sleeper(std::int64_t index) { co_await weir::sleep(bench::far_away(index)); }

weir::task<> sleep_and_weigh(std::int64_t size) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(sleeper(0));
    co_await weir::yield();  // what the first sleeper sets up is not a cost per sleeper
    const std::int64_t before = bench::bytes_in_use();
    for (std::int64_t i = 0; i < size; ++i) s.spawn(sleeper(i));
    co_await weir::yield();  // behind all sleepers: they are parked when this returns
    const std::int64_t used = bench::bytes_in_use() - before;
    bench::report("sleeper_bytes", size, double(used) / double(size), "B");
    s.cancel();
  });
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  weir::run(sleep_and_weigh(bench::size_argument(argc, argv)));
}
