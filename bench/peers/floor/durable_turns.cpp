// SPDX-License-Identifier: MIT
//
// The least that two commits per turn take: a record of every turn is written, and then all turns
// go on. Which keys they have makes no difference to a log.
#include "peers/floor/bare_log.hpp"
#include "support/scratch.hpp"

int main(int argc, char** argv) {
  const std::int64_t keys = bench::size_argument(argc, argv);
  const bench::scratch here(argv[0]);
  bench::bare_log log(here.path("log"));
  bench::run_times times;
  bench::commit_all(log, bench::turns_at_once, bench::commits_per_turn, bench::warm_up, times);
  times.clear();
  log.syncs = 0;
  const auto start = bench::clock::now();
  bench::commit_all(log, bench::turns_at_once, bench::commits_per_turn, bench::run_for, times);
  times.report_turns(keys, bench::nanoseconds_since(start) / 1000, static_cast<double>(log.syncs));
}
