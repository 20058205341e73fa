// SPDX-License-Identifier: MIT
// The machinery of <weir/combinators.hpp>.
#pragma once

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/all_children.hpp>
#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/future.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

/// The wait that represents an input of type `A` (with its value category).
template <rule R, class A>
struct arm_for {
  using type = take_wait<result_t<A>>;  // a child of the combinator
};
template <rule R, class A>
  requires is_pending<std::remove_cvref_t<A>>
struct arm_for<R, A> {
  using type = typename std::remove_cvref_t<A>::wait_type;
};
template <rule R, class A>
  requires is_future<std::remove_cvref_t<A>>
struct arm_for<R, A> {
  using value = result_t<A>;
  using lvalue = std::conditional_t<R == rule::all, reference_wait<value>, copy_wait<value>>;
  using observed = std::conditional_t<std::is_lvalue_reference_v<A>, lvalue, take_wait<value>>;
  using type = std::conditional_t<R == rule::select, settled_wait, observed>;
};

template <class A>
inline constexpr bool needs_fiber =
    !is_pending<std::remove_cvref_t<A>> && !is_future<std::remove_cvref_t<A>>;

/// Where the running coroutine is awaited; reported as the spawn site of its children.
std::source_location caller_site() noexcept;

/// How the coroutine of a combinator stores an input: futures are only observed.
template <class A>
using arm_input = std::conditional_t<is_future<std::remove_cvref_t<A>>, core_ref, std::decay_t<A>>;

template <class A>
decltype(auto) as_input(A&& a) {
  if constexpr (is_future<std::remove_cvref_t<A>>) {
    return core_ref(a.core());
  } else {
    return std::forward<A>(a);
  }
}

/// Checked before anything is started: an empty callable must not leave the others running.
template <class A>
void require_callable(const A& a) {
  if constexpr (is_task<A>) {
    if (!a) raise(errc::already_taken, "task run twice: a task runs only once");
  } else if (is_empty_callable(a)) {
    raise_empty_job();
  }
}

/// Counts the result of a child that was not observed.
void emit_unseen(fiber& f, const scope& s);

/// The children that a combinator started, to count those whose result is not used.
class arm_children {
 public:
  explicit arm_children(scope& s) noexcept : scope_(&s) {}
  template <class Op>
  core_ref start(Op&& op, std::source_location site) {
    auto* f = scope_->adopt(scope::make(std::forward<Op>(op)), {}, site, scope::launch::hidden);
    core_ref ref = core_ref::adopt(f);
    children_.push_back(ref);
    return ref;
  }
  /// Cancels the rest; the children are joined afterwards by `joined`.
  void cancel_losers(rule decided);
  quiet_wait_op<join_wait> joined() const {
    return quiet_wait_op<join_wait>({scope_, join_wait::use::end});
  }
  /// The error to report for the one that decided: see cancel_tree::cause_of.
  std::exception_ptr cause_of(const std::exception_ptr& error);
  /// Counts results that are discarded: values, and errors after the reported one.
  void count_unseen();

 private:
  scope* scope_;
  std::vector<core_ref> children_;
};

/// The constructor argument of an input's wait; futures are passed as they are or as their core.
template <class A>
decltype(auto) observed_args(A&& a) {
  using plain = std::remove_cvref_t<A>;
  if constexpr (std::is_same_v<plain, core_ref>) {
    return core_ref(std::move(a));
  } else if constexpr (is_pending<plain>) {
    return std::forward<A>(a).release();
  } else {
    return core_ref(a.core());
  }
}
template <class A>
decltype(auto) arm_args(arm_children& children, A&& a, std::source_location site) {
  using plain = std::remove_cvref_t<A>;
  if constexpr (std::is_same_v<plain, core_ref> || is_pending<plain> || is_future<plain>) {
    return observed_args(std::forward<A>(a));
  } else {
    return children.start(std::forward<A>(a), site);
  }
}

/// The inputs of a combinator, kept until its coroutine runs.
template <rule R, class... As>
class pack_inputs {
 public:
  using wait_type = pack_wait<R, typename arm_for<R, As>::type...>;

  template <class... Given>
  explicit pack_inputs(std::in_place_t, Given&&... given)
      : inputs_(as_input(std::forward<Given>(given))...) {}
  void check() const {
    std::apply([](const auto&... in) { (require_callable(in), ...); }, inputs_);
  }
  typename wait_type::args start(arm_children& children) {
    return std::apply(
        [&](auto&... in) {
          return typename wait_type::args{arm_args(children, std::move(in), caller_site())...};
        },
        inputs_);
  }

 private:
  std::tuple<arm_input<As>...> inputs_;
};

/// The inputs of an `all` of tasks and callables.
template <class... As>
class all_inputs {
 public:
  static constexpr bool of_range = false;
  using result = typename pack_result<rule::all, result_t<As>...>::type;
  using arms = std::array<core_ref, sizeof...(As)>;

  template <class... Given>
  explicit all_inputs(std::in_place_t, Given&&... given) : inputs_(std::forward<Given>(given)...) {}
  void check() const {
    std::apply([](const auto&... in) { (require_callable(in), ...); }, inputs_);
  }
  arms start(all_scope& s) {
    const std::source_location site = caller_site();
    return std::apply([&](auto&... in) { return arms{s.start(std::move(in), site)...}; }, inputs_);
  }
  static result take(const arms& children) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return result{take_arm<result_t<As>>(children[I])...};
    }(std::index_sequence_for<As...>{});
  }

 private:
  std::tuple<std::decay_t<As>...> inputs_;
};

/// Runs inputs that include tasks or callables: those become fibers in a separate scope.
template <rule R, class Inputs>
task<typename Inputs::wait_type::result> run_children(argument<Inputs> inputs) {
  using wait_type = typename Inputs::wait_type;
  using value = typename wait_type::result;
  detail::unboxed(inputs).check();
  scope s(region_kind::arms, rule_name(R));
  enter_region(s);
  arm_children children(s);
  outcome<value> out;
  try {
    pending<wait_type> first(detail::unboxed(inputs).start(children));
    if constexpr (std::is_void_v<value>) {
      co_await std::move(first);
      out.emplace();
    } else {
      out.emplace(co_await std::move(first));
    }
  } catch (...) {
    out.set_error(children.cause_of(std::current_exception()));
  }
  children.cancel_losers(R);
  co_await children.joined();
  children.count_unseen();
  leave_region(s);
  co_await detail::finish_as(out);
  co_return out.take();
}

template <rule R, class... As>
auto combine(As&&... as) {
  if constexpr (R == rule::all && (needs_fiber<As> && ...)) {
    using inputs = all_inputs<As...>;
    return run_all<inputs>(argument<inputs>(std::in_place, std::forward<As>(as)...));
  } else if constexpr ((needs_fiber<As> || ...)) {
    using inputs = pack_inputs<R, As...>;
    return run_children<R, inputs>(argument<inputs>(std::in_place, std::forward<As>(as)...));
  } else {
    using wait_type = pack_wait<R, typename arm_for<R, As>::type...>;
    return pending<wait_type>(typename wait_type::args{observed_args(std::forward<As>(as))...});
  }
}

/// An input range of operations: not itself an operation.
template <class Range>
concept op_range = std::ranges::input_range<Range> && !operation<Range> &&
                   operation<std::ranges::range_value_t<Range>>;

template <class Range>
using range_element = std::ranges::range_value_t<Range>;

/// A range of tasks or callables. Elements are moved out of a container that is kept here; those of
/// a view are copied if they can be.
template <rule R, class Range>
class range_inputs {
  using element = range_element<Range>;
  static constexpr bool copies = std::ranges::view<Range> && std::is_copy_constructible_v<element>;

 public:
  using wait_type = range_wait<R, take_wait<result_t<element>>>;

  template <class Given>
  range_inputs(std::in_place_t, Given&& range) : range_(std::forward<Given>(range)) {}
  void check() {
    for (auto&& op : range_) require_callable(op);
  }
  typename wait_type::args start(arm_children& children) {
    typename wait_type::args args;
    for (auto&& op : range_) {
      if constexpr (copies) {
        args.push_back(children.start(element(op), caller_site()));
      } else {
        args.push_back(children.start(std::move(op), caller_site()));
      }
    }
    return args;
  }

 private:
  Range range_;
};

/// The same for an `all`.
template <class Range>
class all_range_inputs {
  using element = range_element<Range>;
  static constexpr bool copies = std::ranges::view<Range> && std::is_copy_constructible_v<element>;

 public:
  static constexpr bool of_range = true;
  using value = result_t<element>;
  using result = std::vector<unit_or<plain_result<value>>>;
  using arms = std::vector<core_ref>;

  template <class Given>
  all_range_inputs(std::in_place_t, Given&& range) : range_(std::forward<Given>(range)) {}
  void check() {
    for (auto&& op : range_) require_callable(op);
  }
  arms start(all_scope& s) {
    const std::source_location site = caller_site();
    arms started;
    if constexpr (std::ranges::sized_range<Range>) started.reserve(std::ranges::size(range_));
    for (auto&& op : range_) {
      if constexpr (copies) {
        started.push_back(s.start(element(op), site));
      } else {
        started.push_back(s.start(std::move(op), site));
      }
    }
    return started;
  }
  static result take(const arms& children) {
    result values;
    values.reserve(children.size());
    for (const core_ref& arm : children) values.push_back(take_arm<value>(arm));
    return values;
  }

 private:
  Range range_;
};

template <rule R, class Range>
auto combine_range(Range&& range) {
  using element = range_element<std::remove_cvref_t<Range>>;
  if constexpr (needs_fiber<element> && R == rule::all) {
    using inputs = all_range_inputs<std::remove_cvref_t<Range>>;
    return run_all<inputs>(argument<inputs>(std::in_place, std::forward<Range>(range)));
  } else if constexpr (needs_fiber<element>) {
    using inputs = range_inputs<R, std::remove_cvref_t<Range>>;
    return run_children<R, inputs>(argument<inputs>(std::in_place, std::forward<Range>(range)));
  } else {
    // Waits and futures form one composite wait. An rvalue range of futures is moved from.
    using input = std::conditional_t<std::is_lvalue_reference_v<Range>, element&, element>;
    using wait_type = range_wait<R, typename arm_for<R == rule::all ? rule::race : R, input>::type>;
    typename wait_type::args args;
    for (auto&& op : range) args.push_back(observed_args(std::move(op)));
    return pending<wait_type>(std::move(args));
  }
}

template <class A>
concept combinable = operation<std::remove_cvref_t<A>>;

}  // namespace detail
}  // namespace weir
