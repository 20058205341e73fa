// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weir/detail/core/governor_facade.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/policy/bulkhead.hpp>

namespace weir {

/// Any governor behind one type. Refers to the governor, which must outlive it and its permits;
/// `any_governor(3)` has its own counting governor, which all copies share and the last one
/// destroys. Copyable. Threads: as the governor. Costs: a frame for each acquire.
class any_governor : public detail::governor_facade<const any_governor> {
 public:
  template <governor G>
    requires(!std::same_as<G, any_governor> && !std::is_const_v<G>)
  any_governor(G& g) noexcept : governor_(&g), calls_(&calls_of<G>) {}
  template <std::integral N>
    requires(!std::same_as<N, bool>)
  explicit any_governor(N capacity)
      : any_governor(detail::own_governor(static_cast<std::int64_t>(capacity), "any_governor")) {}

  task<permit> acquire() const { return calls_->acquire(governor_); }
  std::optional<permit> try_acquire() const { return calls_->try_acquire(governor_); }
  /// acquire_for(d): as acquire, for at most `d`: timeout_error.
  using detail::governor_facade<const any_governor>::acquire_for;
  /// Empty if the governor has no name.
  std::string_view name() const { return calls_->name(governor_); }

  /// with(op) and wrap(fn): as weir::with and weir::wrap with this governor.
  using detail::governor_facade<const any_governor>::with;
  using detail::governor_facade<const any_governor>::wrap;

 private:
  struct calls {
    task<permit> (*acquire)(void* g);
    std::optional<permit> (*try_acquire)(void* g);
    std::string_view (*name)(void* g);
  };

  template <class G>
  static task<permit> acquire_of(void* g) {
    co_return co_await static_cast<G*>(g)->acquire();
  }
  template <class G>
  static std::optional<permit> try_acquire_of(void* g) {
    return static_cast<G*>(g)->try_acquire();
  }
  template <class G>
  static std::string_view name_of([[maybe_unused]] void* g) {
    if constexpr (requires { std::string_view(static_cast<G*>(g)->name()); }) {
      return static_cast<G*>(g)->name();
    } else {
      return {};
    }
  }
  template <class G>
  static constexpr calls calls_of{&acquire_of<G>, &try_acquire_of<G>, &name_of<G>};

  explicit any_governor(std::shared_ptr<counting_governor> own) noexcept
      : own_(std::move(own)), governor_(own_.get()), calls_(&calls_of<counting_governor>) {}

  std::shared_ptr<counting_governor> own_;
  void* governor_;
  const calls* calls_;
};

/// As wrap(g, fn), with its own counting governor: at most `limit` calls run at once.
template <std::integral N, class F>
auto wrap(N limit, F&& fn) {
  return detail::governed<std::shared_ptr<counting_governor>, std::decay_t<F>>(
      detail::own_governor(static_cast<std::int64_t>(limit), "wrap"), std::forward<F>(fn));
}

}  // namespace weir
