// SPDX-License-Identifier: MIT
// A future only observes: settling it copies the value, which must be possible.
// EXPECT: move the value out by take()
// ERRORS: 2
#include <weir/weir.hpp>

#include <memory>

weir::task<> caller(weir::future<std::unique_ptr<int>> made) {
  auto how = co_await weir::settle(made);
}
