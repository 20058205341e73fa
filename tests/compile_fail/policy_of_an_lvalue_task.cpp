// SPDX-License-Identifier: MIT
// A task that is piped by name would look as if it were still there afterwards.
// EXPECT: std::move it into the policy
#include <weir/weir.hpp>

weir::task<int> fetch() { co_return 1; }

weir::task<int> caller() {
  using namespace std::chrono_literals;
  auto run = fetch();
  co_return co_await (run | weir::timeout(1s));
}
