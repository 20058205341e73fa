// SPDX-License-Identifier: MIT
// Default arguments are not part of a member function's type: each parameter needs an argument.
// EXPECT: the handler does not take these arguments: there are too few
#include <weir/weir.hpp>

struct counter {
  void add(int, int = 1) {}
};
void sender(const weir::agent_ref<counter>& a) { (void)a.cast(&counter::add, 1); }
