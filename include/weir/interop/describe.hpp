// SPDX-License-Identifier: MIT
// Boost.Describe support: types described with it can be stored.
#pragma once

#include <boost/describe/members.hpp>
#include <boost/describe/modifiers.hpp>
#include <boost/mp11/algorithm.hpp>

#include <weir/durable/serde.hpp>

namespace weir::detail {

/// Includes private members and those of described bases, so that nothing is lost.
template <class T>
using boost_members = boost::describe::describe_members<T, boost::describe::mod_any_access |
                                                               boost::describe::mod_inherited>;

/// BOOST_DESCRIBE_STRUCT and _CLASS work like WEIR_DESCRIBE, which wins if a type has both.
/// Requires: this header is included before the type is first stored.
template <class T, class Visitor>
  requires boost::describe::has_describe_members<T>::value
constexpr void weir_describe_members(described_tag<T>, Visitor&& visitor) {
  boost::mp11::mp_for_each<boost_members<T>>(
      [&](auto member) { visitor(member.name, member.pointer); });
}

}  // namespace weir::detail
