// SPDX-License-Identifier: MIT
// Part of <weir/scope.hpp>, which includes it after the declarations it needs.
#pragma once

#include <source_location>
#include <vector>

#include <weir/context.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/duration.hpp>
#include <weir/future.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>

namespace weir {

namespace detail {

class all_scope;
class join_wait;
struct binding;
struct guided_scope;
struct polite_service;
struct scope_setup;

/// A service that is asked to stop when its scope ends, and cancelled only when the grace expires.
struct polite_service {
  virtual void ask_to_end() noexcept = 0;

 protected:
  ~polite_service() = default;
};

/// The failures of a scope.
struct failures {
  std::vector<std::exception_ptr> raised;      // in completion order
  std::vector<std::exception_ptr> suppressed;  // errors that are not raised
  std::vector<std::exception_ptr> cleanup;     // of defers
  bool has_cause = false;  // an error in `raised` was replaced by that of a supervisor's run
};

/// Reports, when the grace of a cancelled scope expires, which of its children still run.
struct overdue_watch final : deadline_node {
  explicit overdue_watch(scope& s) noexcept : of(&s) {}
  void expired() noexcept override;
  scope* of;
  bool reported = false;
};

/// The options of a scope with its name already copied, for a lazily started coroutine.
struct scope_setup {
  scope_setup(const scope_options& o, std::source_location where);
  scope_options options;
  kept_name name;
  std::source_location site;
};

}  // namespace detail
}  // namespace weir
