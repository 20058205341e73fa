// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/duration.hpp>
#include <weir/name.hpp>
#include <weir/scope.hpp>

namespace weir {

class test_clock;

struct run_options {
  weir::name name{};
  bool handle_signals = false;
  duration grace = std::chrono::seconds(10);
  test_clock* clock = nullptr;
};

namespace detail {

/// Throws errc::nested_run if this thread runs a loop.
void require_no_loop();
/// Runs `root` to its end on a new loop of this thread. Throws errors that are not the root's
/// outcome: nested_run, deadlock.
void run_root(const run_options& options, fiber& root, std::source_location site);

}  // namespace detail

/// Creates a loop on this thread, runs `op` in its root scope, and returns its value or throws its
/// error; cancelled_error if the root was cancelled, errc::deadlock with the tree if nothing can
/// wake any fiber, errc::nested_run inside a running loop.
template <detail::operation Op>
auto run(const run_options& options, Op&& op,
         std::source_location site = std::source_location::current()) {
  using value = detail::result_t<Op>;
  auto* root = scope::make(std::forward<Op>(op));
  const detail::core_ref keep(root);
  detail::run_root(options, *root, site);
  return static_cast<outcome<value>&>(root->result()).take();
}
template <detail::operation Op>
auto run(Op&& op, std::source_location site = std::source_location::current()) {
  return run(run_options{}, std::forward<Op>(op), site);
}

}  // namespace weir
