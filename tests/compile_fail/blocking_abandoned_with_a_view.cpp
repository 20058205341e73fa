// SPDX-License-Identifier: MIT
// An argument of what may outlive its caller owns its content.
// EXPECT: an argument is a pointer, a reference or a view
#include <string_view>

#include <weir/weir.hpp>

weir::task<int> caller(std::string_view text) {
  auto fn = [](std::string_view t) { return static_cast<int>(t.size()); };
  co_return co_await weir::blocking(weir::may_abandon, fn, text);
}
