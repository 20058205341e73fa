// SPDX-License-Identifier: MIT
// The predicate of a retry looks at the error.
// EXPECT: the predicate of retry takes a const std::exception_ptr&
#include <weir/weir.hpp>

auto policy() {
  return weir::retry().when([] { return true; });
}
