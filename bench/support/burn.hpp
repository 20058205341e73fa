// SPDX-License-Identifier: MIT
//
// Jobs that take a known time, to see how much of two cores a pool makes use of.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace bench {

/// A chain of multiplications that the compiler cannot shorten.
[[gnu::noinline]] inline std::uint64_t burn(std::int64_t steps, std::uint64_t x) {
  for (std::int64_t i = 0; i < steps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(x));
  }
  return x;
}

/// How many steps take that long on this machine when nothing interrupts them.
inline std::int64_t steps_for(double nanoseconds) {
  constexpr std::int64_t trial = 100'000;
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = clock::now();
    std::uint64_t x = burn(trial, 1);
    keep(x);
    best = std::min(best, nanoseconds_since(start) / double(trial));
  }
  return static_cast<std::int64_t>(nanoseconds / best);
}

/// How many cores this process may use, at most two. Ask before the first thread is started.
inline int cores_of_two() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  return std::min(2, CPU_COUNT(&allowed));
}

/// Jobs of `microseconds` each, `size` microseconds of work altogether, for two workers.
class busy_jobs {
 public:
  busy_jobs(std::int64_t microseconds, std::int64_t size, int cores)
      : jobs(size / microseconds),
        steps(steps_for(double(microseconds) * 1e3)),
        work_(double(jobs * microseconds) * 1e3),
        cores_(cores) {}

  /// By the clock: multiples of the time that these cores would take without any overhead. Of the
  /// processors: multiples of the work.
  cost by_ideal(const stopwatch& watch) const {
    const cost each = watch.per(work_);
    return {each.wall * cores_, each.cpu};
  }

  const std::int64_t jobs;
  const std::int64_t steps;

 private:
  double work_;
  int cores_;
};

/// For peers: both rows of jobs on `Pool(2)`, which has `submit(fn)`.
template <class Pool>
void measure_busy_jobs(int argc, char** argv) {
  const int cores = cores_of_two();
  const std::int64_t size = size_argument(argc, argv);
  for (const auto& [row, microseconds] : {std::pair{"busy_1us", 1}, std::pair{"busy_10us", 10}}) {
    const busy_jobs busy(microseconds, size, cores);
    Pool pool(2);
    const auto submit_all = [&] {
      finish_line line;
      line.set(busy.jobs);
      const stopwatch watch;
      for (std::int64_t i = 0; i < busy.jobs; ++i) {
        pool.submit([&line, &busy, i] {
          std::uint64_t x = burn(busy.steps, static_cast<std::uint64_t>(i));
          keep(x);
          line.cross();
        });
      }
      line.wait();
      return busy.by_ideal(watch);
    };
    submit_all();
    costs each;
    for (int round = 0; round < 5; ++round) each.add(submit_all());
    each.report(row, size, "x");
  }
}

}  // namespace bench
