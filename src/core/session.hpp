// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <source_location>

#include <weir/run.hpp>

#include "core/loop.hpp"

namespace weir::detail {

/// A loop with its tree: the root scope and the root fiber. `run` makes its turns until the root
/// has ended; a simulation makes its steps itself.
/// REQUIRES: on destruction the root has ended, or the loop was evicted.
class session {
 public:
  session(environment& env, const run_options& options, fiber& root, std::source_location site);
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session();

  loop& here() noexcept { return loop_; }
  bool ended() const noexcept { return static_cast<fiber*>(root_.get())->ended; }

 private:
  loop loop_;
  std::optional<scope> root_scope_;
  core_ref root_;
};

}  // namespace weir::detail
