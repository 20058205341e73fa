// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

#include <weir/detail/core/governor_facade.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/policy/bulkhead.hpp>

namespace weir {

namespace detail {

/// One permit that releases both, the second first.
permit both_permits(permit first, permit second);

}  // namespace detail

/// Grants a permit when both governors have granted theirs: it holds the first while it waits for
/// the second. Refers to both, which must outlive it. If both releases fail: error_group. Threads:
/// as the two governors. Costs: a frame for each acquire, and an allocation for each permit.
///
/// Composing the same governors in opposite orders can deadlock, like locks.
template <governor First, governor Second>
class composed_governor : public detail::governor_facade<const composed_governor<First, Second>> {
  using facade = detail::governor_facade<const composed_governor>;

 public:
  composed_governor(detail::governor_user<First> first,
                    detail::governor_user<Second> second) noexcept
      : first_(std::move(first)), second_(std::move(second)) {}

  task<permit> acquire() const { return acquire_both(first_.governor(), second_.governor()); }
  /// Acquires both without waiting, or neither.
  std::optional<permit> try_acquire() const {
    std::optional<permit> first = first_.governor().try_acquire();
    if (!first) return std::nullopt;
    std::optional<permit> second = second_.governor().try_acquire();
    if (!second) return std::nullopt;
    return detail::both_permits(std::move(*first), std::move(*second));
  }
  /// acquire_for(d): as acquire, for at most `d`: timeout_error.
  using facade::acquire_for;

  /// with(op) and wrap(fn): as weir::with and weir::wrap with this governor.
  using facade::with;
  using facade::wrap;

 private:
  static task<permit> acquire_both(First& first, Second& second) {
    permit a = co_await first.acquire();
    permit b = co_await second.acquire();
    co_return detail::both_permits(std::move(a), std::move(b));
  }

  detail::governor_user<First> first_;
  detail::governor_user<Second> second_;
};

template <governor First, governor Second>
composed_governor<First, Second> compose(First& first, Second& second) noexcept {
  return {detail::governor_user<First>(first), detail::governor_user<Second>(second)};
}
/// With its own counting governor as the second.
template <governor First, std::integral N>
composed_governor<First, counting_governor> compose(First& first, N limit) {
  using own = detail::governor_user<counting_governor>;
  return {detail::governor_user<First>(first),
          own(detail::own_governor(static_cast<std::int64_t>(limit), "compose"))};
}

}  // namespace weir
