// SPDX-License-Identifier: MIT
// A task is one run: awaiting it by name would suggest that it can be awaited again.
// EXPECT: co_await an rvalue task
#include <weir/weir.hpp>

weir::task<int> one() { co_return 1; }

weir::task<int> caller() {
  auto run = one();
  co_return co_await run;
}
