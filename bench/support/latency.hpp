// SPDX-License-Identifier: MIT
//
// What the programs report that do ten-step runs for a while, so that weir and its peers report the
// same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/measure.hpp"

namespace bench {

/// A run begins, does ten steps whose results it keeps, and ends together with the last: it is
/// durable eleven times.
constexpr int commits_per_run = 11;
constexpr auto run_for = std::chrono::milliseconds(1500);
constexpr auto warm_up = std::chrono::milliseconds(200);

class run_times {
 public:
  void add(clock::time_point begun, clock::time_point ended) {
    took_.push_back(std::chrono::duration<double, std::micro>(ended - begun).count());
  }
  std::size_t count() const noexcept { return took_.size(); }
  void clear() { took_.clear(); }

  /// The rows of `size` runs at once, that took `elapsed` microseconds and `syncs` syncs together.
  void report_all(std::int64_t size, double elapsed, double syncs) {
    std::sort(took_.begin(), took_.end());
    const auto runs = static_cast<double>(took_.size());
    report("run_cost", size, elapsed / runs, "us");
    report("commit_cost", size, elapsed / runs / commits_per_run, "us");
    report("run_p05", size, at(0.05), "us");
    report("run_p50", size, at(0.50), "us");
    report("run_p95", size, at(0.95), "us");
    report("run_p99", size, at(0.99), "us");
    report("run_syncs", size, syncs / runs, "count");
  }

 private:
  double at(double part) const {
    const auto index = static_cast<std::size_t>(part * static_cast<double>(took_.size()));
    return took_.at(std::min(index, took_.size() - 1));
  }
  std::vector<double> took_;
};

}  // namespace bench
