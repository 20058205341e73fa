// SPDX-License-Identifier: MIT
//
// Opening an engine on a journal of `size` records, ten of each run, and all runs have ended: per
// record, from the page cache and from the disk, beside a bare scan of the same files.
#include "durable/bare_scan.hpp"
#include "durable/journals.hpp"
#include "support/measure.hpp"
#include "support/scratch.hpp"

namespace {

constexpr int steps = 4;
constexpr std::int64_t records_per_run = 10;
constexpr int rounds = 3;

weir::task<double> open_engine(const std::string& path) {
  double took = 0;
  std::int64_t arrived = 0;
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add("stepper", bench::stepper{steps, true, &arrived});
    const auto start = bench::clock::now();
    co_await e.open();
    took = bench::nanoseconds_since(start);
  };
  co_await weir::durable::with_engine(bench::without_sync(path), body);
  co_return took;
}

double scan(const std::string& path, std::int64_t expected) {
  bench::bare_scan bare;
  const auto start = bench::clock::now();
  const std::int64_t found = bare.count(path);
  const double took = bench::nanoseconds_since(start);
  bench::keep(bare.sum);
  if (found != expected) {
    std::fprintf(stderr, "the bare scan finds %lld records\n", static_cast<long long>(found));
    std::exit(3);
  }
  return took;
}

weir::task<> measure(std::int64_t size, const std::string& path, bool cold) {
  bench::samples opened;
  bench::samples scanned;
  for (int round = 0; round <= rounds; ++round) {
    if (cold) bench::make_cold(path);
    const double bare = scan(path, size);
    if (cold) bench::make_cold(path);
    const double whole = co_await open_engine(path);
    if (round == 0) continue;
    scanned.add(bare / static_cast<double>(size));
    opened.add(whole / static_cast<double>(size));
  }
  bench::report(cold ? "recover_cold" : "recover_warm", size, opened.median(), "ns");
  bench::report(cold ? "scan_cold" : "scan_warm", size, scanned.median(), "ns");
  bench::report(cold ? "ratio_cold" : "ratio_warm", size, opened.median() / scanned.median(), "x");
}

weir::task<> measure_both(std::int64_t size, std::string path) {
  co_await bench::write_journal(path, size / records_per_run, steps, true);
  co_await measure(size, path, false);
  co_await measure(size, path, true);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::scratch here(argv[0]);
  weir::run(measure_both(bench::size_argument(argc, argv), here.path("journal")));
}
