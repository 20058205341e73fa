// SPDX-License-Identifier: MIT
// Part of <weir/governor/governor.hpp>, which includes it after the declarations it needs.
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/task.hpp>

namespace weir {

namespace detail {

/// A function whose every call runs under a permit. `Ref` is a pointer to the governor, or a
/// std::shared_ptr to one that all copies share.
template <class Ref, class F>
class governed {
 public:
  governed(Ref g, F fn) : governor_(std::move(g)), fn_(std::move(fn)) {}
  template <class... Args>
  auto operator()(Args... args) const {
    using made = std::invoke_result_t<const F&, Args...>;
    return run<result_t<made>, Args...>(governor_, fn_, std::move(args)...);
  }

 private:
  template <class T, class... Args>
  static task<T> run(Ref g, F fn, Args... args) {
    auto op = [&]() { return fn(std::move(args)...); };
    co_return co_await weir::with(*g, op);
  }
  Ref governor_;
  F fn_;
};

/// What `wrap` returns; a stream becomes another stream, see weir/stream/async.hpp.
template <class G, class F>
struct wrapped {
  static auto make(G& g, F fn) { return governed<G*, F>(&g, std::move(fn)); }
};

}  // namespace detail
}  // namespace weir
