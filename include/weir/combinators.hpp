// SPDX-License-Identifier: MIT
// all, race, any, all_settled, select: several operations as one.
//
// Operations are owned: losers are cancelled and joined before the result is delivered. Futures are
// only observed. Waits alone start no fiber and allocate nothing: they form one composite wait, so
// an item, permit or lock is either delivered or still in its source.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/combinators.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/future.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>

namespace weir {

/// All values as a tuple (`unit` for void; lvalue futures give `const T&`), or the first error, at
/// once.
template <detail::combinable... As>
  requires(sizeof...(As) > 0)
auto all(As&&... as) {
  return detail::combine<detail::rule::all>(std::forward<As>(as)...);
}
/// All values in input order; empty gives empty.
template <detail::op_range Range>
auto all(Range&& range) {
  return detail::combine_range<detail::rule::all>(std::forward<Range>(range));
}
inline task<std::tuple<>> all() { co_return std::tuple<>(); }

/// The first to settle, value or error. Equal types give `T`, different ones a std::variant by
/// position.
template <detail::combinable... As>
  requires(sizeof...(As) > 0)
auto race(As&&... as) {
  return detail::combine<detail::rule::race>(std::forward<As>(as)...);
}
template <detail::op_range Range>
auto race(Range&& range) {
  return detail::combine_range<detail::rule::race>(std::forward<Range>(range));
}
inline task<unit> race() {
  detail::raise(errc::empty_input, "race of nothing");
  co_return unit{};
}

/// The first value; if all fail, an error_group in input order.
template <detail::combinable... As>
  requires(sizeof...(As) > 0)
auto any(As&&... as) {
  return detail::combine<detail::rule::any>(std::forward<As>(as)...);
}
template <detail::op_range Range>
auto any(Range&& range) {
  return detail::combine_range<detail::rule::any>(std::forward<Range>(range));
}
inline task<unit> any() {
  detail::raise(errc::empty_input, "any of nothing");
  co_return unit{};
}

/// How each of them ended, as a tuple of outcomes; cancels nothing.
template <detail::combinable... As>
  requires(sizeof...(As) > 0)
auto all_settled(As&&... as) {
  return weir::all(weir::settle(std::forward<As>(as))...);
}
inline task<std::tuple<>> all_settled() { co_return std::tuple<>(); }
template <detail::op_range Range>
auto all_settled(Range&& range) {
  using element = detail::range_element<std::remove_cvref_t<Range>>;
  std::vector<task<outcome<detail::result_t<element>>>> settled;
  for (auto&& op : range) {
    if constexpr (detail::is_future<element>) {
      settled.push_back(weir::settle(op));
    } else {
      settled.push_back(weir::settle(std::move(op)));
    }
  }
  return detail::combine_range<detail::rule::all>(std::move(settled));
}

/// The index of the first settled future, the lowest on a tie; nothing is unwrapped.
template <class... Fs>
  requires(sizeof...(Fs) > 0 && (detail::is_future<std::remove_cvref_t<Fs>> && ...))
auto select(const Fs&... futures) {
  return detail::combine<detail::rule::select>(futures...);
}
template <std::ranges::input_range Range>
  requires detail::is_future<std::ranges::range_value_t<Range>>
auto select(const Range& range) {
  std::vector<detail::core_ref> cores;
  for (const auto& f : range) cores.emplace_back(f.core());
  return detail::pending<detail::range_wait<detail::rule::select, detail::settled_wait>>(
      std::move(cores));
}

}  // namespace weir
