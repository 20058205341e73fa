// SPDX-License-Identifier: MIT
// Part of <weir/stream/stream.hpp>, which includes it after the declarations it needs.
#pragma once

#include <type_traits>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/generator.hpp>
#include <weir/detail/flow/stage.hpp>
#include <weir/policy/settle.hpp>
#include <weir/task.hpp>

namespace weir {

namespace detail {

template <class P>
struct stage_type {};
template <class S>
struct stage_type<weir::pipeline<S>> {
  using type = S;
};
template <class T>
struct stage_type<stream<T>> {
  using type = generator_stage<T>;
};
template <class T>
struct stage_type<any_stream<T>>;

/// The stage type of any stream.
template <class P>
using stage_of = typename stage_type<std::remove_cvref_t<P>>::type;

template <class P>
concept any_pipeline = requires { typename stage_of<P>; };

}  // namespace detail
}  // namespace weir
