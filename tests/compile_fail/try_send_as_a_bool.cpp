// SPDX-License-Identifier: MIT
// A closed channel has no room again: a retry must ask whether it is full.
// EXPECT: the result of try_send is no bool: ask .accepted(), .full() or .closed()
#include <weir/weir.hpp>

void send(const weir::sender<int>& out) {
  while (out.try_send(1)) {
  }
}
