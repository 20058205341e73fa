// SPDX-License-Identifier: MIT
// A time limit around a wait does not change where the wait belongs.
// EXPECT: nor does a wait for something
#include <weir/weir.hpp>

void caller(weir::loop_ref there, weir::future<int>& running) {
  (void)weir::on(there, weir::with_timeout(std::chrono::seconds(1), running.take()));
}
