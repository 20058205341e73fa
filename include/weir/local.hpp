// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/local.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/policy/settle.hpp>

namespace weir {

/// A value that is looked up along the tree of scopes: usually a namespace-scope object that acts
/// as a key, with a default. A child inherits the locals of the scope it is spawned into.
template <class T>
class local {
 public:
  template <class... Args>
    requires std::is_constructible_v<T, Args...>
  constexpr explicit local(Args&&... args) : default_(std::forward<Args>(args)...) {}
  local(const local&) = delete;
  local& operator=(const local&) = delete;

  /// The value of the innermost `with_local` around the running code, else the default.
  const T& get() const noexcept {
    const void* found = detail::find_local(this);
    return found == nullptr ? default_ : *static_cast<const T*>(found);
  }

 private:
  T default_;
};

/// Runs `op` with `key` bound to `value`.
template <class T, class V, detail::operation Op>
auto with_local(const local<T>& key, V&& value, Op&& op) {
  using plain = detail::held_t<Op>;
  using region = detail::local_region<T>;
  return detail::run_region<detail::result_t<plain>, region, plain>(
      typename region::setup(&key, T(std::forward<V>(value))), std::forward<Op>(op));
}

}  // namespace weir
