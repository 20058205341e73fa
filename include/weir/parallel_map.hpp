// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/counting_governor.hpp>
#include <weir/detail/arms.hpp>
#include <weir/governor.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

template <class Fn, class Item>
using map_call = std::remove_cvref_t<std::invoke_result_t<Fn&, Item>>;

template <class Made>
struct map_value {
  using type = Made;
};
template <operation Made>
struct map_value<Made> {
  using type = result_t<Made>;
};

template <class Slot, class Fn, class Item>
task<> map_one(Slot& slot, Fn& fn, Item item, [[maybe_unused]] permit held) {
  if constexpr (operation<map_call<Fn, Item>>) {
    auto op = fn(std::forward<Item>(item));
    if constexpr (std::is_void_v<result_t<decltype(op)>>) {
      co_await std::move(op);
      slot.emplace();
    } else {
      slot.emplace(co_await std::move(op));
    }
  } else {
    slot.emplace(fn(std::forward<Item>(item)));
  }
}

template <class Range, class Fn, class G>
auto map_all(Range range, Fn fn, G& g) -> task<std::vector<
    unit_or<typename map_value<map_call<Fn, std::ranges::range_reference_t<Range>>>::type>>> {
  using item = std::ranges::range_reference_t<Range>;
  using value = unit_or<typename map_value<map_call<Fn, item>>::type>;
  std::vector<std::optional<value>> slots;
  if constexpr (std::ranges::sized_range<Range>) {
    slots.resize(static_cast<std::size_t>(std::ranges::size(range)));
  } else {
    slots.resize(static_cast<std::size_t>(std::ranges::distance(range)));
  }
  auto body = [&](scope& s) -> task<> {
    std::size_t i = 0;
    for (auto&& x : range) {
      permit held = co_await g.acquire();
      s.spawn(map_one<std::optional<value>, Fn, item>(slots[i++], fn, std::forward<item>(x),
                                                      std::move(held)));
    }
  };
  co_await with_scope({.name = "parallel_map"}, body);
  std::vector<value> values;
  values.reserve(slots.size());
  for (auto& slot : slots) values.push_back(std::move(*slot));
  co_return values;
}

template <class Range, class Fn>
auto map_limited(Range range, Fn fn, std::int64_t limit)
    -> decltype(map_all(std::move(range), std::move(fn), std::declval<counting_governor&>())) {
  counting_governor g(limit, {.name = "parallel_map"});
  co_return co_await detail::map_all(std::move(range), std::move(fn), g);
}

void require_limit(std::int64_t limit);

}  // namespace detail

/// `fn(item)` for every item, at most `limit` at once, results in input order; the first error
/// cancels the rest and comes out. `fn` gives an operation or a plain value. An lvalue range is
/// referred to, an rvalue one is kept.
template <std::ranges::forward_range Range, class Fn, std::integral Limit>
auto parallel_map(Range&& range, Fn fn, Limit limit) {
  detail::require_limit(static_cast<std::int64_t>(limit));
  return detail::map_limited(std::views::all(std::forward<Range>(range)), std::move(fn),
                             static_cast<std::int64_t>(limit));
}
template <std::ranges::forward_range Range, class Fn, governor G>
auto parallel_map(Range&& range, Fn fn, G& g) {
  return detail::map_all(std::views::all(std::forward<Range>(range)), std::move(fn), g);
}

}  // namespace weir
