// SPDX-License-Identifier: MIT
// A lambda whose body does not compile is a callable; what is wrong is said where it is.
// EXPECT: fetch_all
// NOT: takes a callable
#include <weir/weir.hpp>

auto operation() {
  return weir::op([] { return fetch_all(); }) | weir::retry({.attempts = 3});
}
