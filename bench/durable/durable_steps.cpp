// SPDX-License-Identifier: MIT
//
// What `size` runs of ten steps cost the processor, all threads together, with 64 of them at any
// time and a journal that is not synced.
#include <ctime>

#include "durable/journals.hpp"
#include "support/measure.hpp"
#include "support/scratch.hpp"

namespace {

double cpu_nanoseconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int steps = 10;
  const std::int64_t size = bench::size_argument(argc, argv);
  const bench::scratch here(argv[0]);
  weir::run(bench::write_journal(here.path("first"), 64, steps, true));
  const double before = cpu_nanoseconds();
  weir::run(bench::write_journal(here.path("second"), size, steps, true));
  const double used = cpu_nanoseconds() - before;
  bench::report("run_cpu", size, used / double(size) / 1000, "us");
}
