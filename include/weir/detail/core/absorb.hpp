// SPDX-License-Identifier: MIT
// The machinery of <weir/policy/absorb.hpp>.
#pragma once

#include <utility>

#include <weir/detail/core/run_seam.hpp>
#include <weir/policy/settle.hpp>

namespace weir {

namespace detail {

/// Registered with its run while it is entered, so that a cancellation of the run is delivered
/// here.
struct absorb_region final : plain_region {
  absorb_region();
  absorb_region(const absorb_region&) = delete;
  absorb_region& operator=(const absorb_region&) = delete;
  ~absorb_region();
  void enter();
  /// Decides, by how the operation ended, whether the cancellation is consumed.
  verdict judge(outcome_base& out);

 private:
  run_seam* run_;  // null outside of runs
  bool known_ = false;
};

template <class T, class Op>
struct absorb_coroutine {
  static task<outcome<T>> run(Op op) {
    absorb_region r;
    outcome<T> out;
    auto call = [&] {
      r.enter();
      return detail::as_task(op, r);
    };
    co_await detail::inside(r, out, call);
    if (has_entries(r)) co_await detail::quietly(end_region(r, out));
    if (!detail::apply_verdict(r.judge(out), out)) co_await keep_unwinding{};
    co_return std::move(out);
  }
};

}  // namespace detail
}  // namespace weir
