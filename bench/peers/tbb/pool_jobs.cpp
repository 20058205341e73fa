// SPDX-License-Identifier: MIT
//
// An arena whose places are all for workers, so that the thread that submits does not take part;
// enqueue is oneTBB's "run it some time, in fair order". Its backlog has no limit.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

double enqueue_many(tbb::task_arena& arena, std::int64_t size) {
  bench::finish_line line;
  line.set(size);
  const auto start = bench::clock::now();
  for (std::int64_t i = 0; i < size; ++i) arena.enqueue([&line] { line.cross(); });
  line.wait();
  return bench::nanoseconds_since(start) / static_cast<double>(size);
}

void measure(int workers, std::int64_t size, const char* row) {
  // One thread more than there are workers: the one that submits counts.
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(workers) + 1);
  tbb::task_arena arena(workers, 0);
  bench::samples each;
  enqueue_many(arena, size);
  for (int round = 0; round < rounds; ++round) each.add(enqueue_many(arena, size));
  bench::report(row, size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  measure(1, size, "pool_1");
  measure(2, size, "pool_2");
}
