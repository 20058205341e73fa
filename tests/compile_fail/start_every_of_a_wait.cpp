// SPDX-License-Identifier: MIT
// A wait is awaited once; what runs again and again is a callable that makes one.
// EXPECT: give a callable that makes it
#include <weir/weir.hpp>

weir::every_handle caller(weir::scope& s) {
  return weir::start_every(s, std::chrono::minutes(1), weir::sleep(std::chrono::seconds(1)));
}
