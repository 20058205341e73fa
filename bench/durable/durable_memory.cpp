// SPDX-License-Identifier: MIT
//
// What an engine keeps of `size` runs that sleep in memory, that sleep and were suspended, and that
// have ended: bytes of the heap for each.
#include <malloc.h>

#include "durable/journals.hpp"
#include "support/measure.hpp"
#include "support/scratch.hpp"

namespace {

/// What is small and what has pages of its own, such as the slabs of coroutine frames.
std::int64_t heap_bytes() {
  const auto now = mallinfo2();
  return static_cast<std::int64_t>(now.uordblks + now.hblkhd);
}

weir::task<> weigh(const char* row, std::int64_t size, std::string path, bool ends,
                   std::int64_t max_live) {
  std::int64_t arrived = 0;
  weir::durable::engine_options options = bench::without_sync(path);
  options.max_live = max_live;
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add("stepper", bench::stepper{0, ends, &arrived});
    co_await e.open();
    // What the first runs set up, such as buffers, is not a cost per run.
    bench::to_start first{e, 100, ends};
    co_await bench::start_some(first);
    co_await weir::sleep(std::chrono::milliseconds(20));
    const std::int64_t before = heap_bytes();
    bench::to_start all{e, size, ends};
    co_await bench::start_some(all);
    co_await weir::sleep(std::chrono::milliseconds(50));
    bench::report(row, size, double(heap_bytes() - before) / double(size), "B");
  };
  co_await weir::durable::with_engine(options, body);
}

weir::task<> weigh_all(std::int64_t size, const bench::scratch& here) {
  co_await weigh("parked_bytes", size, here.path("parked"), false, 1'000'000);
  co_await weigh("suspended_bytes", size, here.path("suspended"), false, 16);
  co_await weigh("ended_bytes", size, here.path("ended"), true, 1'000'000);
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, 1);
  const bench::scratch here(argv[0]);
  weir::run(weigh_all(bench::size_argument(argc, argv), here));
}
