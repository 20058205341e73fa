// SPDX-License-Identifier: MIT
// The machinery of <weir/local.hpp>.
#pragma once

#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/policy/settle.hpp>

namespace weir {

namespace detail {

/// One value of one local, visible inside the region that holds it.
struct binding {
  const void* key = nullptr;
  void* value = nullptr;
  binding* outer = nullptr;
};

/// The value bound to `key` around the running code; null if there is none.
void* find_local(const void* key) noexcept;

struct local_region_base : plain_region {
  local_region_base(const void* key, void* value, const char* name = "with_local");
  binding bound;
};

template <class T>
struct local_region final : local_region_base {
  struct setup {
    setup(const void* k, T v) : key(k), value(std::move(v)) {}
    const void* key;
    T value;
  };
  explicit local_region(setup s) : local_region_base(s.key, &value), value(std::move(s.value)) {}
  T value;
};

}  // namespace detail
}  // namespace weir
