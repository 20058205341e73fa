// SPDX-License-Identifier: MIT
#include "peers/tbb/workers.hpp"
#include "support/burn.hpp"
#include "support/finish_line.hpp"

namespace {

constexpr int rounds = 5;

bench::cost enqueue_many(tbb::task_arena& arena, const bench::busy_jobs& busy) {
  bench::finish_line line;
  line.set(busy.jobs);
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < busy.jobs; ++i) {
    arena.enqueue([&line, &busy, i] {
      std::uint64_t x = bench::burn(busy.steps, static_cast<std::uint64_t>(i));
      bench::keep(x);
      line.cross();
    });
  }
  line.wait();
  return busy.by_ideal(watch);
}

void measure(const char* row, std::int64_t microseconds, std::int64_t size, int cores) {
  const bench::busy_jobs busy(microseconds, size, cores);
  bench::workers workers(2);
  bench::costs each;
  enqueue_many(workers.arena, busy);
  for (int round = 0; round < rounds; ++round) each.add(enqueue_many(workers.arena, busy));
  each.report(row, size, "x");
}

}  // namespace

int main(int argc, char** argv) {
  const int cores = bench::cores_of_two();
  const std::int64_t size = bench::size_argument(argc, argv);
  measure("busy_1us", 1, size, cores);
  measure("busy_10us", 10, size, cores);
}
