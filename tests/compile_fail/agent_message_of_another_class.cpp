// SPDX-License-Identifier: MIT
// A ref names an agent of one class; a message is one of its own member functions, or of a base.
// EXPECT: the message is a member function of another class than the agent's
#include <weir/weir.hpp>

struct counter {
  void inc(int) {}
};
struct other {
  void poke() {}
};
void sender(const weir::agent_ref<counter>& a) { (void)a.cast(&other::poke); }
