// SPDX-License-Identifier: MIT
//
// What the programs report that do ten-step runs or turns of objects for a while, so that weir and
// its peers report the same.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/measure.hpp"

namespace bench {

/// A run begins, does ten steps whose results it keeps, and ends together with the last: it is
/// durable eleven times.
constexpr int commits_per_run = 11;
/// A turn of an object is accepted, and then it changes its state and gives its result.
constexpr int commits_per_turn = 2;
/// How many turns there are at any time.
constexpr std::int64_t turns_at_once = 64;
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
    const auto runs = static_cast<double>(took_.size());
    report("commit_cost", size, elapsed / runs / commits_per_run, "us");
    report_each("run", size, elapsed, syncs);
  }
  /// The rows of turns of `keys` objects.
  void report_turns(std::int64_t keys, double elapsed, double syncs) {
    report_each("turn", keys, elapsed, syncs);
  }

 private:
  void report_each(const std::string& what, std::int64_t size, double elapsed, double syncs) {
    std::sort(took_.begin(), took_.end());
    const auto all = static_cast<double>(took_.size());
    report((what + "_cost").c_str(), size, elapsed / all, "us");
    report((what + "_p05").c_str(), size, at(0.05), "us");
    report((what + "_p50").c_str(), size, at(0.50), "us");
    report((what + "_p95").c_str(), size, at(0.95), "us");
    report((what + "_p99").c_str(), size, at(0.99), "us");
    report((what + "_syncs").c_str(), size, syncs / all, "count");
  }
  double at(double part) const {
    const auto index = static_cast<std::size_t>(part * static_cast<double>(took_.size()));
    return took_.at(std::min(index, took_.size() - 1));
  }
  std::vector<double> took_;
};

}  // namespace bench
