// SPDX-License-Identifier: MIT
// The machinery of <weir/parallel_map.hpp>.
#pragma once

#include <coroutine>
#include <cstddef>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/arms.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
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

/// Whether the running strand has started children that run next.
bool has_children_next() noexcept;

/// Lets the children that were started depth first run until they end or wait themselves. Nothing
/// happens where children are in the ready queue.
class children_first final : public local_wait {
 public:
  bool await_ready() const noexcept { return !has_children_next(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> me) {
    current->leaf = &me.promise();
    give_up_turn(*current, *this);
  }
  void await_resume() const noexcept {}
  bool poll() override { return true; }
  void link() override {}
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override;

  struct op {
    children_first weir_await() && { return children_first(); }
  };
};

/// A call never began, because the caller is cancelled or its cleanup is overdue: there is nothing
/// to return, so the caller is unwound here.
class call_missing : public simple_wait<call_missing, local_wait> {
 public:
  struct args {};
  using result = void;
  explicit call_missing(args&&) noexcept {}
  bool try_now() const noexcept { return false; }
  void arm() const noexcept {}
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override;
  void take() const noexcept {}

 protected:
  ~call_missing() = default;
};

/// A range that is referred to (an lvalue) or kept (an rvalue).
template <class Range>
class kept_range {
 public:
  explicit kept_range(Range&& range) : range_(std::forward<Range>(range)) {}
  auto& get() noexcept { return range_; }

 private:
  Range range_;
};

/// The argument type of `fn`: the element, or the moved element if `fn` accepts nothing else.
template <class Range, class Fn>
using map_item = std::conditional_t<std::is_invocable_v<Fn&, std::ranges::range_reference_t<Range>>,
                                    std::ranges::range_reference_t<Range>,
                                    std::ranges::range_rvalue_reference_t<Range>>;
template <class Range, class Fn>
using mapped =
    unit_or<typename map_value<map_call<Fn, map_item<std::remove_reference_t<Range>, Fn>>>::type>;

template <class Range, class Fn, class G>
task<std::vector<mapped<Range, Fn>>> map_all(kept_range<Range> kept, Fn fn, G& g) {
  using item = map_item<std::remove_reference_t<Range>, Fn>;
  using result_slot = std::optional<mapped<Range, Fn>>;
  auto& range = kept.get();
  std::vector<result_slot> slots(static_cast<std::size_t>(std::ranges::distance(range)));
  auto body = [&](scope& s) -> task<> {
    std::size_t i = 0;
    for (auto&& x : range) {
      permit held = co_await g.acquire();
      auto call =
          map_one<result_slot, Fn, item>(slots[i++], fn, static_cast<item>(x), std::move(held));
      core_ref::adopt(s.adopt(scope::make(std::move(call)), {}, std::source_location::current(),
                              scope::launch::next));
      co_await children_first::op();
    }
  };
  co_await with_scope({.name = "parallel_map"}, body);
  std::vector<mapped<Range, Fn>> values;
  values.reserve(slots.size());
  for (auto& filled : slots) {
    if (!filled) [[unlikely]]
      co_await pending<call_missing>(call_missing::args());
    values.push_back(std::move(*filled));
  }
  co_return values;
}

template <class Range, class Fn>
task<std::vector<mapped<Range, Fn>>> map_limited(kept_range<Range> kept, Fn fn,
                                                 std::int64_t limit) {
  counting_governor g(limit, {.name = "parallel_map"});
  co_return co_await detail::map_all<Range, Fn>(std::move(kept), std::move(fn), g);
}

void require_limit(std::int64_t limit);

}  // namespace detail
}  // namespace weir
