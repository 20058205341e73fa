// SPDX-License-Identifier: MIT
//
// An arena whose places are all for workers, so that the thread that submits does not take part;
// enqueue is oneTBB's "run it some time, in fair order". Its backlog has no limit.
#pragma once

#include <utility>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

namespace bench {

struct workers {
  explicit workers(int count)
      // One thread more than there are workers: the one that submits counts.
      : threads(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(count) + 1),
        arena(count, 0) {}

  template <class F>
  void submit(F fn) {
    arena.enqueue(std::move(fn));
  }

  tbb::global_control threads;
  tbb::task_arena arena;
};

}  // namespace bench
