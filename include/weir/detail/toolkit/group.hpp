// SPDX-License-Identifier: MIT
// Part of <weir/group.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>
#include <source_location>

#include <weir/detail/core/op.hpp>
#include <weir/name.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

struct group_region;
class group_wait;

/// The options of a group with its name already copied.
struct group_setup {
  group_setup(const group_options& o, std::source_location where);
  scope_setup scope;
  std::int64_t collect;
};

}  // namespace detail
}  // namespace weir
