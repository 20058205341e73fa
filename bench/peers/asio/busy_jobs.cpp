// SPDX-License-Identifier: MIT
#include "peers/asio/bounded_pool.hpp"
#include "support/burn.hpp"
#include "support/finish_line.hpp"

namespace {

constexpr int rounds = 5;

bench::cost submit_many(bench::bounded_pool& pool, const bench::busy_jobs& busy) {
  bench::finish_line line;
  line.set(busy.jobs);
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < busy.jobs; ++i) {
    pool.submit([&line, &busy, i] {
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
  bench::bounded_pool pool(2);
  bench::costs each;
  submit_many(pool, busy);
  for (int round = 0; round < rounds; ++round) each.add(submit_many(pool, busy));
  each.report(row, size, "x");
}

}  // namespace

int main(int argc, char** argv) {
  const int cores = bench::cores_of_two();
  const std::int64_t size = bench::size_argument(argc, argv);
  measure("busy_1us", 1, size, cores);
  measure("busy_10us", 10, size, cores);
}
