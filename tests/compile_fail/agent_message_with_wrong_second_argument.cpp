// SPDX-License-Identifier: MIT
// Of several arguments the message names the one that is wrong.
// EXPECT: the second one does not convert to its parameter's type
#include <string>
#include <weir/weir.hpp>

struct register_of {
  int put(std::string, int, std::string) { return 1; }
};
weir::task<int> caller(const weir::agent_ref<register_of>& a) {
  co_return co_await a.call(&register_of::put, "key", "three", "text");
}
