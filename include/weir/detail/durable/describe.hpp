// SPDX-License-Identifier: MIT
// How WEIR_DESCRIBE lists members, and how the list is found.
#pragma once

#include <type_traits>

namespace weir::detail {

/// A tag for a type, so that the description of a base is not used for a derived class.
template <class T>
struct described_tag {};

struct no_visitor {
  template <class Pointer>
  constexpr void operator()(const char*, Pointer) const noexcept {}
};

template <class T>
concept described =
    std::is_class_v<T> && requires(no_visitor v) { weir_describe_members(described_tag<T>{}, v); };

}  // namespace weir::detail

// A macro cannot call itself, so each round leaves a call for the next one to expand, and the text
// is scanned often enough for more than 64 rounds.
#define WEIR_DETAIL_PARENS ()
#define WEIR_DETAIL_SCAN(...) \
  WEIR_DETAIL_SCAN_3(WEIR_DETAIL_SCAN_3(WEIR_DETAIL_SCAN_3(__VA_ARGS__)))
#define WEIR_DETAIL_SCAN_3(...) \
  WEIR_DETAIL_SCAN_2(WEIR_DETAIL_SCAN_2(WEIR_DETAIL_SCAN_2(__VA_ARGS__)))
#define WEIR_DETAIL_SCAN_2(...) \
  WEIR_DETAIL_SCAN_1(WEIR_DETAIL_SCAN_1(WEIR_DETAIL_SCAN_1(__VA_ARGS__)))
#define WEIR_DETAIL_SCAN_1(...) \
  WEIR_DETAIL_SCAN_0(WEIR_DETAIL_SCAN_0(WEIR_DETAIL_SCAN_0(__VA_ARGS__)))
#define WEIR_DETAIL_SCAN_0(...) __VA_ARGS__
#define WEIR_DETAIL_VISIT(type, member, ...) \
  weir_visitor(#member, &type::member);      \
  __VA_OPT__(WEIR_DETAIL_VISIT_AGAIN WEIR_DETAIL_PARENS(type, __VA_ARGS__))
#define WEIR_DETAIL_VISIT_AGAIN() WEIR_DETAIL_VISIT
