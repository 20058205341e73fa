// SPDX-License-Identifier: MIT
//
// Eleven commits per run: a transaction has a record of 200 bytes of every run. Syncs are not
// counted: one per transaction, and those of checkpoints.
#include "peers/sqlite/database.hpp"
#include "support/latency.hpp"
#include "support/scratch.hpp"

namespace {

std::int64_t run_all(bench::database& db, std::int64_t size, bench::clock::duration for_so_long,
                     bench::run_times& times) {
  const std::string payload(200, 'x');
  const auto until = bench::clock::now() + for_so_long;
  std::int64_t transactions = 0;
  while (bench::clock::now() < until) {
    const auto begun = bench::clock::now();
    for (int i = 0; i < bench::commits_per_run; ++i) {
      db.begin();
      for (std::int64_t run = 0; run < size; ++run) db.append(run, i, payload);
      db.commit();
      ++transactions;
    }
    const auto ended = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) times.add(begun, ended);
  }
  return transactions;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const bench::scratch here(argv[0]);
  bench::database db(here.path("database"));
  bench::run_times times;
  run_all(db, size, bench::warm_up, times);
  times.clear();
  const auto start = bench::clock::now();
  const std::int64_t transactions = run_all(db, size, bench::run_for, times);
  times.report_all(size, bench::nanoseconds_since(start) / 1000, static_cast<double>(transactions));
}
