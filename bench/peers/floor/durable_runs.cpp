// SPDX-License-Identifier: MIT
//
// The least that eleven commits per run take: a record of every run is written, and then all runs
// go on.
#include "peers/floor/bare_log.hpp"
#include "support/scratch.hpp"

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const bench::scratch here(argv[0]);
  bench::bare_log log(here.path("log"));
  bench::run_times times;
  bench::commit_all(log, size, bench::commits_per_run, bench::warm_up, times);
  times.clear();
  log.syncs = 0;
  const auto start = bench::clock::now();
  bench::commit_all(log, size, bench::commits_per_run, bench::run_for, times);
  times.report_all(size, bench::nanoseconds_since(start) / 1000, static_cast<double>(log.syncs));
}
