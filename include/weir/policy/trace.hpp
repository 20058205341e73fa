// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/toolkit/policy_event.hpp>
#include <weir/detail/toolkit/trace.hpp>
#include <weir/local.hpp>
#include <weir/name.hpp>

namespace weir {

/// `op | trace("quote")`: events of nested policies, including those that `op` itself uses, have
/// this name as their `object`; `stats()` counts how the operation ended, as `value`, `error` and
/// `cancelled` of this name. Changes nothing else.
class trace : public detail::policy_of<trace> {
 public:
  explicit trace(const weir::name& name) : name_(name) {}

  // Below: for the library.
  template <class T, class P, class Op>
  static task<T> run(P policy, Op op) {
    using region = detail::trace_region;
    return detail::run_region<T, region, Op>(region::setup(policy.name_), std::forward<Op>(op));
  }

 private:
  detail::shared_name name_;
};

}  // namespace weir
