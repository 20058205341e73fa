// SPDX-License-Identifier: MIT
// scope::start: a child that reports when it is up.
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/start.hpp>
#include <weir/future.hpp>
#include <weir/scope.hpp>

namespace weir {

/// Given to the function of scope::start, which calls it once when the child is up.
template <class U>
class started : public detail::started_base {
 public:
  /// Resumes the starter with `value`. A second call: errc::already_started.
  void operator()(U value) {
    claim();
    no_longer_starting();
    if (waiting_ == nullptr) return;
    waiting_->value.emplace(std::move(value));
    std::exchange(waiting_, nullptr)->say();
  }
  void wait_with(detail::value_wait<U>& w) noexcept { waiting_ = &w; }

 private:
  detail::value_wait<U>* waiting_ = nullptr;
};

template <>
class started<void> : public detail::started_base {
 public:
  void operator()() {
    claim();
    no_longer_starting();
    if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->say();
  }
  void wait_with(detail::value_wait<void>& w) noexcept { waiting_ = &w; }

 private:
  detail::value_wait<void>* waiting_ = nullptr;
};

}  // namespace weir

#include <weir/detail/core/start_wait.hpp>

namespace weir {

template <class F>
auto scope::start(F&& fn, spawn_options options, std::source_location site) {
  using value = typename detail::started_arg<std::decay_t<F>>::type;
  if (detail::is_empty_callable(fn)) detail::raise_empty_job();
  admit("start");
  return detail::run_start<value, std::decay_t<F>>(*this, std::forward<F>(fn),
                                                   detail::kept_name(options.name), site);
}

}  // namespace weir
