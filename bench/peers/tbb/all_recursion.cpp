// SPDX-License-Identifier: MIT
//
// Every call is a task of a task_group. On one thread, as weir's fibers are, and on two.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "support/fib.hpp"

namespace {

constexpr int rounds = 5;

std::int64_t fib(std::int64_t n) {
  if (n < 2) return n;
  std::int64_t before = 0;
  std::int64_t last = 0;
  tbb::task_group group;
  group.run([&] { last = fib(n - 1); });
  group.run_and_wait([&] { before = fib(n - 2); });
  return last + before;
}

void measure(const char* row, int threads, std::int64_t size) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads, 1);
  bench::costs each;
  arena.execute([&] {
    for (int round = 0; round <= rounds; ++round) {
      const bench::stopwatch watch;
      const std::int64_t value = fib(size);
      if (round > 0) each.add(watch.per(bench::fib_calls(size)));
      bench::check_fib(size, value);
    }
  });
  each.report(row, size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  measure("all_recursion", 1, size);
  measure("recursion_2", 2, size);
}
