// SPDX-License-Identifier: MIT
//
// Recursion with `all`: fib(size), where every call is a fiber. The cost is that of one call; the
// memory is what the whole recursion has touched, and must grow with its depth only.
#include <weir/weir.hpp>

#include "support/fib.hpp"

namespace {

constexpr int rounds = 5;

weir::task<std::int64_t> fib(std::int64_t n) {
  if (n < 2) co_return n;
  const auto [last, before] = co_await weir::all(fib(n - 1), fib(n - 2));
  co_return last + before;
}

weir::task<> recurse(std::int64_t size) {
  bench::costs each;
  const std::int64_t before = bench::bytes_in_use();
  for (int round = 0; round <= rounds; ++round) {
    const bench::stopwatch watch;
    const std::int64_t value = co_await fib(size);
    if (round > 0) each.add(watch.per(bench::fib_calls(size)));
    bench::check_fib(size, value);
  }
  const auto touched = static_cast<double>(bench::bytes_in_use() - before);
  each.report("all_recursion", size);
  bench::report("recursion_memory", size, touched / 1000, "KB");
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  weir::run(recurse(bench::size_argument(argc, argv)));
}
