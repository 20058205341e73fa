// SPDX-License-Identifier: MIT
#include <weir/policy/chaos.hpp>

#include <weir/context.hpp>
#include <weir/detail/toolkit/policy_event.hpp>

#include "toolkit/chance.hpp"
#include "toolkit/option.hpp"

namespace weir {

chaos_error::chaos_error()
    : error(errc::chaos_fault, "chaos: a fault was injected instead of running the operation") {}

namespace detail {

void check_options(const chaos_options& options) {
  const auto is_rate = [](double r) { return r >= 0 && r <= 1; };
  require_option(is_rate(options.fault_rate), "chaos", "fault_rate is not in 0..1");
  require_option(options.latency >= duration::zero(), "chaos",
                 "latency is negative; give 0 or more");
  require_option(is_rate(options.latency_rate), "chaos", "latency_rate is not in 0..1");
}

duration draw_latency(const chaos_options& options) {
  if (options.latency == duration::zero()) return options.latency;
  return happens(options.latency_rate) ? options.latency : duration::zero();
}

bool draw_fault(const chaos_options& options, outcome_base& out) {
  if (this_context().cancel_requested() || !happens(options.fault_rate)) return false;
  emit_policy_event("fault", "chaos");
  out.set_error(std::make_exception_ptr(chaos_error()));
  return true;
}

}  // namespace detail
}  // namespace weir
