// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <utility>

#include <weir/detail/core/run_region.hpp>
#include <weir/detail/toolkit/pipe.hpp>
#include <weir/detail/toolkit/policy_event.hpp>
#include <weir/local.hpp>
#include <weir/name.hpp>

namespace weir {

namespace detail {

/// The key under which nested policies find the name of their trace.
extern const char trace_key;

struct trace_region final : local_region_base {
  struct setup {
    explicit setup(const shared_name& n) : name(n) {}
    shared_name name;
  };
  explicit trace_region(setup s);
  verdict judge(outcome_base& out);

 private:
  shared_name name_;
  std::string_view text_;
};

}  // namespace detail

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
