// SPDX-License-Identifier: MIT
// What keeps an ended run known although its retention is over: a handle to it.
#pragma once

#include <cstdint>
#include <memory>

namespace weir::detail {

class engine_core;

/// What the handles of one run share. Its engine lives as long.
class run_hold {
 public:
  run_hold(std::shared_ptr<engine_core> engine, std::uint64_t number) noexcept
      : engine_(std::move(engine)), number_(number) {}
  run_hold(const run_hold&) = delete;
  run_hold& operator=(const run_hold&) = delete;
  /// On another loop than the engine's it does nothing: the run stays known.
  ~run_hold();

  const std::shared_ptr<engine_core>& engine() const noexcept { return engine_; }
  /// The run begins again, with this number.
  void pass_to(std::uint64_t number) noexcept { number_ = number; }

 private:
  std::shared_ptr<engine_core> engine_;
  std::uint64_t number_;
};

/// A run that has handles, as its engine knows it.
struct held_run {
  std::weak_ptr<run_hold> by;
  bool due = false;  // it is forgotten when they are gone
};

}  // namespace weir::detail
