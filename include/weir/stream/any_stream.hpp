// SPDX-License-Identifier: MIT
// `any_stream<T>`: a stream of `T` whose stages are hidden, for interfaces and for members. It owns
// the stream that it was made from, in one allocation, and lives on the same loop. It ends as that
// stream does. Each item costs one virtual call.
#pragma once

#include <type_traits>
#include <utility>

#include <weir/detail/flow/any_stream.hpp>
#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/stream/join.hpp>
#include <weir/stream/source.hpp>
#include <weir/stream/transform.hpp>

namespace weir {

/// A type-erased stream, for interfaces that must not expose the type of a pipeline. One virtual
/// call for each item. `concat` and `start_with` on it do not nest.
template <class T>
class any_stream : public pipeline<detail::any_stage<T>> {
 public:
  template <detail::any_pipeline P>
    requires(!std::is_lvalue_reference_v<P> && std::is_same_v<typename P::value_type, T> &&
             !std::is_same_v<P, any_stream>)
  any_stream(P&& stream)
      : pipeline<detail::any_stage<T>>(
            detail::any_stage<T>(detail::erase(detail::stage_from(std::forward<P>(stream))))) {}
  explicit any_stream(detail::any_stage<T> stage)
      : pipeline<detail::any_stage<T>>(std::move(stage)) {}
};

template <class T, class V>
any_stream<T> operator|(any_stream<T>&& source, detail::stage_op<detail::start_with_stage, V> op) {
  detail::any_stage<T> stage = std::move(source).release();
  stage.put_in_front(detail::erase(detail::once_stage<T>(T(std::move(op).template argument<0>()))));
  return any_stream<T>(std::move(stage));
}

/// Concatenates to an any_stream without nesting.
template <class T, detail::any_pipeline... P>
any_stream<T> concat(any_stream<T>&& first, P&&... rest) {
  detail::any_stage<T> stage = std::move(first).release();
  (stage.put_behind(any_stream<T>(std::forward<P>(rest)).release()), ...);
  return any_stream<T>(std::move(stage));
}

}  // namespace weir
