// SPDX-License-Identifier: MIT
// The composite waits behind race, any, all and select: a fixed pack of arms, or a range of them.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <weir/detail/core/composite.hpp>
#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

namespace weir {

/// Represents `void` where a value is needed.
struct unit {
  friend bool operator==(unit, unit) = default;
};

namespace detail {

enum class rule : std::uint8_t {
  race,    // the first to settle
  any,     // the first value, or all errors
  all,     // all values, or the first error
  select,  // the index of the first to settle
};

/// Whether the arm that just completed decides the composite.
constexpr bool rule_decides(rule r, bool failed, std::size_t completed, std::size_t count) {
  if (r == rule::any) return !failed || completed == count;
  if (r == rule::all) return failed || completed == count;
  return true;
}

constexpr const char* rule_name(rule r) {
  constexpr const char* names[] = {"race", "any", "all", "select"};
  return names[static_cast<std::size_t>(r)];
}

template <class T>
using unit_or = std::conditional_t<std::is_void_v<T>, unit, T>;

template <class First, class... Rest>
inline constexpr bool all_same = (std::is_same_v<First, Rest> && ...);

template <class T>
using plain_result = std::conditional_t<std::is_void_v<T>, void, std::remove_cvref_t<T>>;

template <rule R, class... Results>
struct pack_result;
template <class... Results>
struct pack_result<rule::all, Results...> {
  using type = std::tuple<unit_or<Results>...>;
};
template <class... Results>
struct pack_result<rule::select, Results...> {
  using type = std::size_t;
};
template <rule R, class First, class... Rest>
  requires(R == rule::race || R == rule::any)
struct pack_result<R, First, Rest...> {
  using type = std::conditional_t<
      all_same<plain_result<First>, plain_result<Rest>...>, std::type_identity<plain_result<First>>,
      std::type_identity<
          std::variant<unit_or<plain_result<First>>, unit_or<plain_result<Rest>>...>>>::type;
};

/// Waits side by side, each with its link. Recursive, because waits cannot be moved into a tuple.
template <class... Ws>
struct arm_pack;
template <class W, class... Rest>
struct arm_pack<W, Rest...> {
  template <std::size_t I, class Args>
  arm_pack(std::integral_constant<std::size_t, I>, Args& args)
      : here(std::move(std::get<I>(args))),
        rest(std::integral_constant<std::size_t, I + 1>{}, args) {}
  W here;
  arm_pack<Rest...> rest;
};
template <>
struct arm_pack<> {
  template <std::size_t I, class Args>
  arm_pack(std::integral_constant<std::size_t, I>, Args&) {}
};

template <std::size_t I, class Pack>
auto& arm_in(Pack& pack) noexcept {
  if constexpr (I == 0) {
    return pack.here;
  } else {
    return arm_in<I - 1>(pack.rest);
  }
}

template <rule R, class... Ws>
class pack_wait : public arms_wait {
  static constexpr std::size_t count = sizeof...(Ws);

 public:
  static constexpr bool home_bound = (is_home_bound<Ws> || ...);
  using args = std::tuple<typename Ws::args...>;
  using result = typename pack_result<R, typename Ws::result...>::type;

  explicit pack_wait(args&& a) : arms_(std::integral_constant<std::size_t, 0>{}, a) {
    asks_again_ = R == rule::all;
    for (std::size_t i = 0; i < count; ++i) {
      links_[i].owner = this;
      links_[i].index = static_cast<std::uint32_t>(i);
    }
  }
  bool try_now() { return try_arms(); }
  void arm() noexcept { arm_rest(); }
  bool failed() const noexcept {
    return broken() || (R != rule::select && const_cast<pack_wait*>(this)->arm_failed(winner()));
  }
  void describe(dump_line& line) const override {
    line.add(rule_name(R)).add(" of ").add(count);
    const char* before = " (";
    const auto part = [&](const wait& w) {
      line.add(before);
      w.describe(line);
      before = ", ";
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (part(arm_in<I>(arms_)), ...);
    }(std::make_index_sequence<count>{});
    line.add(")");
  }
  result take() {
    rethrow_problem();
    if constexpr (R == rule::select) {
      return winner();
    } else if constexpr (R == rule::all) {
      if (arm_failed(winner())) rethrow_at<0>(winner());
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return result{take_unit<I>()...};
      }(std::make_index_sequence<count>{});
    } else {
      if (R == rule::any && arm_failed(winner())) throw_all();
      for (std::size_t i = 0; completed() > 1 && i < count; ++i)
        if (i != winner() && links_[i].state == arm_link::phase::completed && !arm_failed(i))
          emit_discarded(rule_name(R));
      return take_winner<0>();
    }
  }

 private:
  std::size_t arm_count() const noexcept override { return count; }
  bool delivers_after_cancel() const noexcept override {
    return R == rule::race || R == rule::select;
  }
  cancel_kind loser_kind() const noexcept override {
    return R == rule::all ? cancel_kind::sibling_failed : cancel_kind::race_lost;
  }
  arm_link& link_at(std::size_t i) noexcept override { return links_[i]; }
  wait& arm_at(std::size_t i) noexcept override {
    wait* found = nullptr;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == i ? void(found = &arm_in<I>(arms_)) : void()), ...);
    }(std::make_index_sequence<count>{});
    return *found;
  }
  bool arm_failed(std::size_t i) noexcept {
    bool failed = false;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == i ? void(failed = arm_in<I>(arms_).failed()) : void()), ...);
    }(std::make_index_sequence<count>{});
    return failed;
  }
  bool decides(std::size_t i) noexcept override {
    return rule_decides(R, arm_failed(i), completed(), count);
  }

  template <std::size_t I>
  decltype(auto) take_unit() {
    auto& arm = arm_in<I>(arms_);
    if constexpr (std::is_void_v<decltype(arm.take())>) {
      arm.take();
      return unit{};
    } else {
      return arm.take();
    }
  }
  template <std::size_t I>
  result take_winner() {
    if constexpr (I + 1 < count) {
      if (winner() != I) return take_winner<I + 1>();
    }
    if constexpr (std::is_void_v<result>) {
      arm_in<I>(arms_).take();
    } else if constexpr (all_same<plain_result<typename Ws::result>...>) {
      return arm_in<I>(arms_).take();
    } else {
      return result(std::in_place_index<I>, take_unit<I>());
    }
  }
  template <std::size_t I>
  void rethrow_at(std::size_t i) {
    if (i == I) (void)take_unit<I>();
    if constexpr (I + 1 < count) rethrow_at<I + 1>(i);
  }
  template <std::size_t I>
  void collect(std::vector<std::exception_ptr>& errors) {
    try {
      (void)take_unit<I>();
    } catch (...) {
      errors.push_back(std::current_exception());
    }
  }
  [[noreturn]] void throw_all() {
    std::vector<std::exception_ptr> errors;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (collect<I>(errors), ...);
    }(std::make_index_sequence<count>{});
    throw error_group(std::move(errors));
  }

  arm_pack<Ws...> arms_;
  arm_link links_[count];
};

template <rule R, class T>
struct range_result {
  using type = plain_result<T>;
};
template <class T>
struct range_result<rule::all, T> {
  using type = std::vector<unit_or<plain_result<T>>>;
};
template <class T>
struct range_result<rule::select, T> {
  using type = std::size_t;
};

/// The same over a run-time number of waits of one type. One allocation.
template <rule R, class W>
class range_wait : public arms_wait {
 public:
  static constexpr bool home_bound = is_home_bound<W>;
  using args = std::vector<typename W::args>;
  using result = typename range_result<R, typename W::result>::type;

  explicit range_wait(args&& a) : arms_(new storage[a.size()]) {
    asks_again_ = R == rule::all;
    try {
      for (; count_ < a.size(); ++count_) make_arm(std::move(a[count_]));
    } catch (...) {  // moving a value may throw
      destroy_arms();
      throw;
    }
  }
  ~range_wait() { destroy_arms(); }
  bool try_now() { return count_ == 0 || try_arms(); }
  bool poll() override { return try_now(); }
  void arm() noexcept { arm_rest(); }
  bool failed() const noexcept {
    if (count_ == 0) return R != rule::all;
    return broken() || (R != rule::select && arms_[winner()].arm.failed());
  }
  void describe(dump_line& line) const override { line.add(rule_name(R)).add(" of ").add(count_); }
  result take() {
    rethrow_problem();
    if (count_ == 0 && R != rule::all)
      raise(errc::empty_input, std::string(rule_name(R)) + " of an empty range");
    if constexpr (R == rule::select) {
      return winner();
    } else if constexpr (R == rule::all) {
      return take_all();
    } else {
      if (R == rule::any && arms_[winner()].arm.failed()) throw_all();
      for (std::size_t i = 0; completed() > 1 && i < count_; ++i)
        if (i != winner() && arms_[i].link.state == arm_link::phase::completed &&
            !arms_[i].arm.failed())
          emit_discarded(rule_name(R));
      return arms_[winner()].arm.take();
    }
  }

 private:
  struct held_wait final : W {
    explicit held_wait(typename W::args&& given) : W(std::move(given)) {}
  };
  struct storage {
    storage() noexcept {}
    ~storage() {}
    arm_link link;
    union {
      held_wait arm;
    };
  };
  void make_arm(typename W::args&& a) {
    storage& next = arms_[count_];
    new (static_cast<void*>(&next.arm)) held_wait(std::move(a));
    next.link.owner = this;
    next.link.index = static_cast<std::uint32_t>(count_);
  }
  void destroy_arms() noexcept {
    for (std::size_t i = 0; i < count_; ++i) arms_[i].arm.~held_wait();
  }
  std::size_t arm_count() const noexcept override { return count_; }
  bool delivers_after_cancel() const noexcept override {
    return R == rule::race || R == rule::select;
  }
  cancel_kind loser_kind() const noexcept override {
    return R == rule::all ? cancel_kind::sibling_failed : cancel_kind::race_lost;
  }
  wait& arm_at(std::size_t i) noexcept override { return arms_[i].arm; }
  arm_link& link_at(std::size_t i) noexcept override { return arms_[i].link; }
  bool decides(std::size_t i) noexcept override {
    return rule_decides(R, arms_[i].arm.failed(), completed(), count_);
  }
  result take_all() {
    if (count_ > 0 && arms_[winner()].arm.failed()) (void)arms_[winner()].arm.take();
    result values;
    values.reserve(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      if constexpr (std::is_void_v<typename W::result>) {
        arms_[i].arm.take();
        values.emplace_back();
      } else {
        values.push_back(arms_[i].arm.take());
      }
    }
    return values;
  }
  [[noreturn]] void throw_all() {
    std::vector<std::exception_ptr> errors;
    for (std::size_t i = 0; i < count_; ++i) {
      try {
        (void)arms_[i].arm.take();
      } catch (...) {
        errors.push_back(std::current_exception());
      }
    }
    throw error_group(std::move(errors));
  }

  std::size_t count_ = 0;
  std::unique_ptr<storage[]> arms_;
};

}  // namespace detail
}  // namespace weir
