// SPDX-License-Identifier: MIT
// For programs that describe their types with Boost.Describe: weir stores them, too.
#pragma once

#include <boost/describe/members.hpp>
#include <boost/describe/modifiers.hpp>
#include <boost/mp11/algorithm.hpp>

#include <weir/serde.hpp>

namespace weir::detail {

/// Every member counts: private ones and those of described bases, so that nothing is lost.
template <class T>
using boost_members = boost::describe::describe_members<T, boost::describe::mod_any_access |
                                                               boost::describe::mod_inherited>;

/// A type with BOOST_DESCRIBE_STRUCT or _CLASS is as good as one with WEIR_DESCRIBE, which wins if
/// there are both. Requires: this header comes before the type is first stored.
template <class T, class Visitor>
  requires boost::describe::has_describe_members<T>::value
constexpr void weir_describe_members(described_tag<T>, Visitor&& visitor) {
  boost::mp11::mp_for_each<boost_members<T>>(
      [&](auto member) { visitor(member.name, member.pointer); });
}

}  // namespace weir::detail
