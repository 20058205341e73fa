// SPDX-License-Identifier: MIT
//
// The smallest program of the API page; only the size of its stripped binary matters here.
#include <weir/weir.hpp>

using namespace std::chrono_literals;

weir::task<int> answer() {
  co_await weir::sleep(10ms);
  co_return 42;
}

int main() { return weir::run(answer()) == 42 ? 0 : 1; }
