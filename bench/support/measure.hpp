// SPDX-License-Identifier: MIT
//
// What every benchmark program shares: its size argument, a stopwatch, the median, the memory
// in use, and the one line per result that bench/run reads: row <TAB> size <TAB> value <TAB> unit,
// and a fifth field where the processor time of all threads is measured beside the wall time.
#pragma once

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace bench {

using clock = std::chrono::steady_clock;

/// Makes the compiler believe that `value` is read and changed here, so that the work which
/// produced it cannot be optimised away.
template <typename T>
inline void keep(T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

/// The number of items, the only argument of a benchmark program.
inline std::int64_t size_argument(int argc, char** argv) {
  const std::int64_t size = argc == 2 ? std::atoll(argv[1]) : 0;
  if (size <= 0) {
    std::fprintf(stderr, "usage: %s SIZE (a positive number of items)\n", argv[0]);
    std::exit(2);
  }
  return size;
}

inline double nanoseconds_since(clock::time_point start) {
  return std::chrono::duration<double, std::nano>(clock::now() - start).count();
}

/// What this thread has used of a processor. Where nothing waits it is what a clock says on a quiet
/// machine, and the same on a busy one.
inline double thread_nanoseconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return double(used.tv_sec) * 1e9 + double(used.tv_nsec);
}

/// The same of all threads of the process.
inline double process_nanoseconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return double(used.tv_sec) * 1e9 + double(used.tv_nsec);
}

/// A deterministic spread of `index` over 0..999999: a multiplicative hash, because sorted or
/// equal deadlines would flatter a timer queue.
inline std::int64_t scatter(std::int64_t index) {
  const auto mixed = static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15ull;
  return static_cast<std::int64_t>((mixed >> 33) % 1'000'000);
}

/// Scattered deadlines from one to two hours ahead: none is due while a benchmark runs.
inline std::chrono::nanoseconds far_away(std::int64_t index) {
  return std::chrono::hours(1) + std::chrono::microseconds(3600) * scatter(index);
}

/// Collects one value per round. A warm-up round is simply not added.
class samples {
 public:
  void add(double value) { values_.push_back(value); }

  double median() const {
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.at(sorted.size() / 2);
  }

 private:
  std::vector<double> values_;
};

inline void report(const char* row, std::int64_t size, double value, const char* unit) {
  std::printf("%s\t%lld\t%.3f\t%s\n", row, static_cast<long long>(size), value, unit);
  std::fflush(stdout);
}

/// What a round takes: by the clock, and of the processors.
struct cost {
  double wall;
  double cpu;
};

inline void report(const char* row, std::int64_t size, cost each, const char* unit = "ns") {
  std::printf("%s\t%lld\t%.3f\t%s\t%.3f\n", row, static_cast<long long>(size), each.wall, unit,
              each.cpu);
  std::fflush(stdout);
}

/// Runs from its construction on.
class stopwatch {
 public:
  /// The cost so far, divided by a number of items or of nanoseconds.
  cost per(double divisor) const {
    return {nanoseconds_since(start_) / divisor, (process_nanoseconds() - cpu_) / divisor};
  }
  cost per(std::int64_t items) const { return per(static_cast<double>(items)); }

 private:
  double cpu_ = process_nanoseconds();
  clock::time_point start_ = clock::now();
};

/// Collects one cost per round and reports the medians.
class costs {
 public:
  void add(cost round) {
    wall_.add(round.wall);
    cpu_.add(round.cpu);
  }

  void report(const char* row, std::int64_t size, const char* unit = "ns") const {
    bench::report(row, size, {wall_.median(), cpu_.median()}, unit);
  }

 private:
  samples wall_;
  samples cpu_;
};

/// Without this a machine whose huge pages are "always" on would count 2 MiB for the first byte.
inline void use_small_pages() { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

/// Bytes of private memory this process has touched. smaps_rollup walks the page tables and so is
/// exact, unlike the per-CPU counters behind VmRSS; file-backed pages (code) are left out.
inline std::int64_t bytes_in_use() {
  std::FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot read /proc/self/smaps_rollup: no bytes can be reported\n");
    std::exit(3);
  }
  long long kibibytes = -1;
  char line[256];
  while (kibibytes < 0 && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "Anonymous:", 10) == 0) kibibytes = std::atoll(line + 10);
  }
  std::fclose(file);
  return kibibytes * 1024;
}

}  // namespace bench
