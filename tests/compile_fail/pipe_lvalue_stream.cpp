// SPDX-License-Identifier: MIT
// A stream has one consumer: an operator takes it over.
// EXPECT: a stream has one consumer: move it into the pipeline
#include <weir/weir.hpp>

auto pipe(weir::stream<int>& numbers) {
  return numbers | weir::map([](int n) { return n; });
}
