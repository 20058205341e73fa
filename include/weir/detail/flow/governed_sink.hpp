// SPDX-License-Identifier: MIT
// Part of <weir/stream/async.hpp>, which includes it after the declarations it needs.
#pragma once

#include <optional>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/pump.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/governor/counting.hpp>
#include <weir/policy/bulkhead.hpp>
#include <weir/scope.hpp>
#include <weir/stream/sink.hpp>

namespace weir {

namespace detail {

struct pass_on {
  template <class T>
  T operator()(T item) const {
    return item;
  }
};
struct drop_result {
  template <class T>
  void operator()(T&&) const noexcept {}
};
struct is_true {
  bool operator()(bool held) const noexcept { return held; }
};

/// A sink that runs `fn` for several items at once before `Sink` sees the results.
template <template <class...> class Stage, class G, class F, class Sink>
class governed_sink_op {
 public:
  using is_stream_sink = void;
  governed_sink_op(G g, F fn, Sink sink)
      : permits_(std::move(g)), fn_(std::move(fn)), sink_(std::move(sink)) {}
  template <class S>
  auto apply(S source) && {
    return std::move(sink_).apply(
        Stage<S, G, F>(std::move(source), std::move(permits_), std::move(fn_)));
  }

 private:
  G permits_;
  F fn_;
  Sink sink_;
};

template <template <class...> class Stage, class G, class F, class Sink>
auto with_permits(G&& g, F fn, Sink sink) {
  return governed_sink_op<Stage, permits_t<G>, F, Sink>(permits_from(std::forward<G>(g)),
                                                        std::move(fn), std::move(sink));
}

/// Calls a predicate and keeps the item if it is true.
template <class P>
struct keep_if {
  P predicate;
  template <class T>
  task<std::optional<T>> operator()(T item) {
    return ask(predicate, std::move(item));
  }
  template <class T>
  static task<std::optional<T>> ask(P& predicate, T item) {
    std::optional<bool> held;
    auto look = [&](const T& seen) { return predicate(seen); };
    co_await call_async<decltype(look), const T&, bool>(look, item, held);
    std::optional<T> kept;
    if (*held) kept.emplace(std::move(item));
    co_return kept;
  }
};

template <class S>
struct found_body {
  using result = value_of<S>;
  static task<result> walk(weir::pipeline<S>& source) {
    result found;
    auto step = [&](value_of<S>&& item) {
      if (item) found = std::move(item);
      return !found;
    };
    co_await for_all_items<S, decltype(step)>::run(source, step);
    co_return found;
  }
};
template <class S>
struct found_sink : sink_task<S, found_body<S>> {};

}  // namespace detail
}  // namespace weir
