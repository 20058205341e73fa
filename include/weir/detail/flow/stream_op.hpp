// SPDX-License-Identifier: MIT
// How `stream | operator` becomes a new stream, and `stream | sink` an operation.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include <weir/stream/stream.hpp>

namespace weir::detail {

/// An operator that is not applied yet: the arguments of `Stage<S, Args...>` except the source.
template <template <class...> class Stage, class... Args>
class stage_op {
 public:
  using is_stream_op = void;
  explicit stage_op(Args... args) : args_(std::move(args)...) {}
  template <std::size_t I>
  decltype(auto) argument() && {
    return std::get<I>(std::move(args_));
  }
  template <class S>
  auto apply(S source) && {
    return std::apply(
        [&](Args&... args) { return Stage<S, Args...>(std::move(source), std::move(args)...); },
        args_);
  }

 private:
  std::tuple<Args...> args_;
};

/// A sink that is not applied yet: `Sink<S, Args...>::run(source, args...)` is the task.
template <template <class...> class Sink, class... Args>
class sink_op {
 public:
  using is_stream_sink = void;
  explicit sink_op(Args... args) : args_(std::move(args)...) {}
  template <class S>
  auto apply(S source) && {
    return std::apply(
        [&](Args&... args) { return Sink<S, Args...>::run(std::move(source), std::move(args)...); },
        args_);
  }

 private:
  std::tuple<Args...> args_;
};

template <class Op>
concept stream_op = requires { typename std::remove_cvref_t<Op>::is_stream_op; };
template <class Op>
concept stream_sink = requires { typename std::remove_cvref_t<Op>::is_stream_sink; };

/// The left operand is the result of an await: a common mistake.
template <class V, class Op>
  requires((stream_op<Op> || stream_sink<Op>) && !any_pipeline<V> && !stream_op<V> &&
           !std::is_same_v<std::remove_cvref_t<V>, refused>)
refused operator|(V&&, Op&&) {
  static_assert(any_pipeline<V>,
                "what is left of | is no stream; co_await binds tighter than |, so write "
                "co_await (s | sink) with parentheses");
  return {};
}

template <class P>
auto stage_from(P&& source) {
  static_assert(!std::is_lvalue_reference_v<P>,
                "a stream has one consumer: move it into the pipeline, std::move(s) | ...");
  return std::move(source).release();
}

template <class S>
weir::pipeline<S> make_pipeline(S stage) {
  return weir::pipeline<S>(std::move(stage));
}

}  // namespace weir::detail

namespace weir {

template <detail::any_pipeline P, detail::stream_op Op>
auto operator|(P&& source, Op op) {
  return detail::make_pipeline(std::move(op).apply(detail::stage_from(std::forward<P>(source))));
}
template <detail::any_pipeline P, detail::stream_sink Op>
auto operator|(P&& source, Op op) {
  return std::move(op).apply(detail::stage_from(std::forward<P>(source)));
}

}  // namespace weir
