// SPDX-License-Identifier: MIT
//
// A call guarded by a time limit and a retry that needs neither: what the two cost when all is
// well. Heap allocations are counted by replacing operator new; frames come from weir's caches.
#include <new>

#include <weir/weir.hpp>

#include "support/measure.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 7;
std::int64_t allocations = 0;  // of the only thread

[[gnu::noinline]] weir::task<std::int64_t> ready(std::int64_t value) { co_return value; }

weir::task<> guard_many(std::int64_t size) {
  std::int64_t next = 0;
  const auto guarded =
      weir::op([&] { return ready(next); }) | weir::timeout(1h) | weir::retry({.attempts = 3});
  bench::costs each;
  bench::samples allocated;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const std::int64_t before = allocations;
    const bench::stopwatch watch;
    for (next = 0; next < size; ++next) sum += co_await guarded();
    const bench::cost cost = watch.per(size);
    bench::keep(sum);
    if (round == 0) continue;
    each.add(cost);
    allocated.add(static_cast<double>(allocations - before) / static_cast<double>(size));
  }
  each.report("timeout_retry", size);
  bench::report("policy_allocs", size, allocated.median(), "count");
}

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) { weir::run(guard_many(bench::size_argument(argc, argv))); }
