// SPDX-License-Identifier: MIT
//
// How a thread learns that jobs on other threads are done, the same for every C++ pool.
#pragma once

#include <atomic>
#include <cstdint>

namespace bench {

/// Jobs cross it on any thread; one thread waits until the last one has. Used again by set().
class finish_line {
 public:
  void set(std::int64_t jobs) {
    left_.store(jobs, std::memory_order_relaxed);
    crossed_.store(false, std::memory_order_release);
  }
  void cross() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    crossed_.store(true, std::memory_order_release);
    crossed_.notify_one();
  }
  void wait() const { crossed_.wait(false, std::memory_order_acquire); }

 private:
  alignas(64) std::atomic<std::int64_t> left_{0};
  alignas(64) std::atomic<bool> crossed_{false};
};

}  // namespace bench
