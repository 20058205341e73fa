// SPDX-License-Identifier: MIT
// CPU-bound loops: oneTBB's parallel_for and parallel_reduce, called through weir::blocking, and
// stopped by a cancellation. Built only where oneTBB is installed.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <vector>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_group.h>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

using numbers = std::vector<std::int64_t>;
using range = tbb::blocked_range<std::size_t>;

// Runs `work(group)` on a thread of the blocking pool, whose parallel loops are part of `group`. If
// the caller is cancelled or times out, the loops start no further chunk, and the caller goes on
// when the chunks that were running have ended.
template <class Work>
task<> with_tbb(Work work) {
  tbb::task_group_context group;
  // Called on this loop's thread; a task_group_context may be cancelled on any.
  std::stop_callback stop(weir::this_context().stop_token(),
                          [&] { group.cancel_group_execution(); });
  co_await weir::blocking([&] { work(group); });
  // What a cancelled loop has computed is incomplete. This await unwinds the cancelled caller.
  if (group.is_group_execution_cancelled()) co_await weir::checkpoint();
}

task<> square(numbers& values) {
  co_await with_tbb([&](tbb::task_group_context& group) {
    tbb::parallel_for(
        range(0, values.size()),
        [&](const range& part) {
          for (std::size_t i = part.begin(); i != part.end(); ++i) values[i] *= values[i];
        },
        tbb::auto_partitioner(), group);
  });
}

task<std::int64_t> sum(const numbers& values) {
  std::int64_t total = 0;
  co_await with_tbb([&](tbb::task_group_context& group) {
    total = tbb::parallel_reduce(
        range(0, values.size()), std::int64_t{0},
        [&](const range& part, std::int64_t partial) {
          for (std::size_t i = part.begin(); i != part.end(); ++i) partial += values[i];
          return partial;
        },
        std::plus<>(), tbb::auto_partitioner(), group);
  });
  co_return total;
}

constexpr std::int64_t years = std::int64_t{1} << 50;

// A loop that would take years. Chunks of 1000 with simple_partitioner, because a loop stops
// between two chunks: other partitioners may give a thread millions of steps as one.
task<> search(std::atomic<std::int64_t>& visited, weir::event& begun) {
  const weir::loop_ref here = weir::this_loop();
  co_await with_tbb([&](tbb::task_group_context& group) {
    here.post([&] { begun.set(); });
    tbb::parallel_for(
        range(0, static_cast<std::size_t>(years), 1000),
        [&](const range& part) { visited += static_cast<std::int64_t>(part.size()); },
        tbb::simple_partitioner(), group);
  });
  std::puts("  never printed: the search has no result");
}

task<> stopped() {
  std::atomic<std::int64_t> visited{0};
  weir::event begun;
  try {
    co_await weir::with_timeout(50ms, search(visited, begun));
  } catch (const weir::timeout_error&) {
    std::puts(visited < years ? "  timed out early" : "  searched all");
  }
  begun.reset();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(search(visited, begun));
    co_await begun.wait();
    s.cancel();
  });
  std::puts(visited < years ? "  cancelled early" : "  searched all");
}

// An error of a chunk cancels the others and reaches the caller.
task<> failing() {
  try {
    co_await with_tbb([](tbb::task_group_context& group) {
      tbb::parallel_for(
          range(0, 100'000, 1000),
          [](const range& part) {
            if (part.begin() == 0) throw std::runtime_error("chunk 0 failed");
          },
          tbb::simple_partitioner(), group);
    });
  } catch (const std::runtime_error& e) {
    std::printf("  %s\n", e.what());
  }
}

task<> program() {
  numbers values(1'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i % 10);
  std::puts("loops over an array");
  co_await square(values);
  const std::int64_t total = co_await sum(values);
  std::printf("  the sum of the squares is %lld\n", static_cast<long long>(total));
  std::puts("loops that are stopped");
  co_await stopped();
  std::puts("loops that fail");
  co_await failing();
}

}  // namespace

int main() { weir::run(program()); }
