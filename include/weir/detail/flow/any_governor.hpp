// SPDX-License-Identifier: MIT
// Part of <weir/governor/any.hpp>, which includes it after the declarations it needs.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/policy/bulkhead.hpp>
#include <weir/policy/deadline.hpp>

namespace weir {

namespace detail {

/// As governed, with its own counting governor that all copies share.
template <class F>
class self_governed {
 public:
  self_governed(std::shared_ptr<counting_governor> own, F fn)
      : own_(std::move(own)), fn_(std::move(fn)) {}
  template <class... Args>
  auto operator()(Args... args) const {
    using made = std::invoke_result_t<const F&, Args...>;
    return run<result_t<made>, Args...>(own_, fn_, std::move(args)...);
  }

 private:
  template <class T, class... Args>
  static task<T> run(std::shared_ptr<counting_governor> own, F fn, Args... args) {
    auto op = [&]() { return fn(std::move(args)...); };
    co_return co_await weir::with(*own, op);
  }
  std::shared_ptr<counting_governor> own_;
  F fn_;
};

}  // namespace detail
}  // namespace weir
