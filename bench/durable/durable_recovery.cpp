// SPDX-License-Identifier: MIT
//
// Opening an engine on a journal of `size` records, ten of each run, and all runs have ended: per
// record, from the page cache (in time of the processor) and from the disk (by the clock), beside a
// bare scan of the same files, and beside the journal without an engine. With all runs kept, and
// with the retention of all of them over.
#include <filesystem>

#include "durable/bare_scan.hpp"
#include "durable/journal.hpp"
#include "durable/journals.hpp"
#include "support/measure.hpp"
#include "support/scratch.hpp"

namespace {

constexpr int steps = 4;
constexpr std::int64_t records_per_run = 10;
constexpr int rounds = 3;

/// What is measured: from the disk one has to wait for it.
double now(bool cold) {
  using namespace std::chrono;
  if (!cold) return bench::thread_nanoseconds();
  return duration<double, std::nano>(bench::clock::now().time_since_epoch()).count();
}

struct counting_reader final : weir::detail::record_reader {
  void see(const weir::detail::record_head& head, std::string_view, std::uint64_t,
           weir::detail::record_place) override {
    sum += head.run;
  }
  std::uint64_t sum = 0;
};

double open_journal(const std::string& path, bool cold) {
  counting_reader reader;
  weir::detail::journal j({.path = path, .sync = false});
  const double start = now(cold);
  j.open(reader);
  const double took = now(cold) - start;
  bench::keep(reader.sum);
  return took;
}

weir::task<double> open_engine(const std::string& path, bool cold, weir::duration retention) {
  double took = 0;
  std::int64_t arrived = 0;
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add("stepper", bench::stepper{steps, true, &arrived});
    const double start = now(cold);
    co_await e.open();
    took = now(cold) - start;
  };
  auto options = bench::without_sync(path);
  options.retention = retention;
  co_await weir::durable::with_engine(options, body);
  co_return took;
}

/// On a copy, because an engine may replace what it has forgotten.
weir::task<double> open_over(const std::string& path, bool cold) {
  const std::string copy = path + ".over";
  std::filesystem::remove_all(copy);
  std::filesystem::copy(path, copy, std::filesystem::copy_options::recursive);
  if (cold) bench::make_cold(copy);
  co_return co_await open_engine(copy, cold, weir::duration::zero());
}

double scan(const std::string& path, std::int64_t expected, bool cold) {
  bench::bare_scan bare;
  const double start = now(cold);
  const std::int64_t found = bare.count(path);
  const double took = now(cold) - start;
  bench::keep(bare.sum);
  if (found != expected) {
    std::fprintf(stderr, "the bare scan finds %lld records\n", static_cast<long long>(found));
    std::exit(3);
  }
  return took;
}

weir::task<> measure(std::int64_t size, const std::string& path, bool cold) {
  bench::samples opened;
  bench::samples over;
  bench::samples scanned;
  bench::samples read;
  const auto each = static_cast<double>(size);
  for (int round = 0; round <= rounds; ++round) {
    if (cold) bench::make_cold(path);
    const double bare = scan(path, size, cold);
    if (cold) bench::make_cold(path);
    const double journal = open_journal(path, cold);
    if (cold) bench::make_cold(path);
    const double whole =
        co_await open_engine(path, cold, weir::durable::engine_options().retention);
    const double forgotten = co_await open_over(path, cold);
    if (round == 0) continue;
    scanned.add(bare / each);
    read.add(journal / each);
    opened.add(whole / each);
    over.add(forgotten / each);
  }
  bench::report(cold ? "recover_cold" : "recover_warm", size, opened.median(), "ns");
  bench::report(cold ? "read_cold" : "read_warm", size, read.median(), "ns");
  bench::report(cold ? "scan_cold" : "scan_warm", size, scanned.median(), "ns");
  bench::report(cold ? "ratio_cold" : "ratio_warm", size, opened.median() / scanned.median(), "x");
  bench::report(cold ? "over_cold" : "over_warm", size, over.median() / scanned.median(), "x");
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
