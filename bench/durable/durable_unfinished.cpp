// SPDX-License-Identifier: MIT
//
// Opening an engine on a journal of `size` records, a hundred of each run, and no run has ended:
// per record, until it is open, and until all runs were replayed and are where they were; from the
// page cache, in time of the processor.
#include "durable/journals.hpp"
#include "support/measure.hpp"
#include "support/scratch.hpp"

namespace {

constexpr int steps = 49;
constexpr std::int64_t records_per_run = 100;

weir::task<> measure(std::int64_t size, std::string path) {
  const std::int64_t runs = size / records_per_run;
  co_await bench::write_journal(path, runs, steps, false);
  std::int64_t arrived = 0;
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add("stepper", bench::stepper{steps, false, &arrived});
    const double start = bench::thread_nanoseconds();
    co_await e.open();
    const double open = bench::thread_nanoseconds() - start;
    while (arrived < runs) co_await weir::yield();
    const double replayed = bench::thread_nanoseconds() - start;
    bench::report("open_unfinished", size, open / static_cast<double>(size), "ns");
    bench::report("replay_unfinished", size, replayed / static_cast<double>(size), "ns");
  };
  co_await weir::durable::with_engine(bench::without_sync(path), body);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::scratch here(argv[0]);
  weir::run(measure(bench::size_argument(argc, argv), here.path("journal")));
}
