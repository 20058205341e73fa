// SPDX-License-Identifier: MIT
// What runs in an agent is written in its class, where a reader looks for it.
// EXPECT: a message is a member function of the agent
#include <weir/weir.hpp>

struct counter {
  int n = 0;
};
void sender(const weir::agent_ref<counter>& a) {
  (void)a.cast([](counter& c) { ++c.n; });
}
