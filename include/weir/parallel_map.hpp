// SPDX-License-Identifier: MIT
// `parallel_map(range, fn, limit)`: calls `fn` for the elements of a range, several at once, and
// returns the results in order. It is a task that owns a scope: each call is a child fiber on the
// caller's loop. It ends when all calls have ended; the first error cancels the others and is
// thrown after they were joined.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/parallel_map.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/scope.hpp>

namespace weir {

/// `fn(item)` for every item, at most `limit` at once, results in input order; the first error
/// cancels the rest and is thrown. `fn` returns an operation or a plain value. An lvalue range is
/// referred to, an rvalue range is kept.
template <std::ranges::forward_range Range, class Fn, class Limit>
  requires(std::integral<Limit> || std::is_same_v<Limit, unbounded_t>)
auto parallel_map(Range&& range, Fn fn, Limit limit) {
  constexpr std::int64_t most = 0xffffffff;  // the maximum of a governor
  if (detail::is_empty_callable(fn)) detail::raise_empty_job();
  const auto wanted = static_cast<std::int64_t>(limit);
  detail::require_limit(wanted);
  return detail::map_limited<Range, Fn>(detail::kept_range<Range>(std::forward<Range>(range)),
                                        std::move(fn), wanted < most ? wanted : most);
}
template <std::ranges::forward_range Range, class Fn, governor G>
auto parallel_map(Range&& range, Fn fn, G& g) {
  if (detail::is_empty_callable(fn)) detail::raise_empty_job();
  return detail::map_all<Range, Fn>(detail::kept_range<Range>(std::forward<Range>(range)),
                                    std::move(fn), g);
}

}  // namespace weir
