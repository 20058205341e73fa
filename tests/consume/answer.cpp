// SPDX-License-Identifier: MIT
// The smallest program that needs the library's headers, its compiled part and its threads.
#include <chrono>
#include <weir/weir.hpp>

weir::task<int> answer() {
  co_await weir::sleep(std::chrono::milliseconds(1));
  co_return 42;
}

int main() { return weir::run(answer()) == 42 ? 0 : 1; }
