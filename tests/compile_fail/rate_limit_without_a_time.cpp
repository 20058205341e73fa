// SPDX-License-Identifier: MIT
// Five in what time?
// EXPECT: rate_limit(n): n in what time? write rate_limit(n, 1s)
#include <weir/weir.hpp>

auto slowly() { return weir::rate_limit(5); }
