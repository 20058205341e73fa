// SPDX-License-Identifier: MIT
//
// Memory of a spawned child with its frame: all are alive at once, because spawn never runs a child
// inline and the body does not give up its turn while it counts.
#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

[[gnu::noinline]] weir::task<> child() { co_return; }

weir::task<> spawn_and_weigh(std::int64_t size) {
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(child());  // what the first child sets up is not a cost per child
    const std::int64_t before = bench::bytes_in_use();
    for (std::int64_t i = 0; i < size; ++i) s.spawn(child());
    const std::int64_t used = bench::bytes_in_use() - before;
    bench::report("child_bytes", size, double(used) / double(size), "B");
    co_return;
  });
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  weir::run(spawn_and_weigh(bench::size_argument(argc, argv)));
}
