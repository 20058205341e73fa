// SPDX-License-Identifier: MIT
// The machinery of <weir/policy/trace.hpp>.
#pragma once

#include <string_view>

#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/run_region.hpp>
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
}  // namespace weir
