// SPDX-License-Identifier: MIT
// Arguments are converted when the message is sent, so they must be convertible.
// EXPECT: the handler does not take these arguments: the first one does not convert
#include <weir/weir.hpp>

struct counter {
  void inc(int) {}
};
void sender(const weir::agent_ref<counter>& a) { (void)a.cast(&counter::inc, "three"); }
