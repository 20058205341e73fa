// SPDX-License-Identifier: MIT
// docs/compilers.md: g++-12 destroys an aggregate twice that is made in an awaited expression; weir
// refuses those that it can see. clang-19 is right, and compiles it.
// COMPILER: g++
// EXPECT: g++-12 destroys an aggregate twice
#include <string>
#include <weir/weir.hpp>

struct row {
  std::string text;
  int number = 0;
};
weir::task<> sender(weir::queue<row>& q, weir::sender<row>& s, weir::broadcast<row>& b,
                    std::string text) {
  co_await q.push({text, 1});
  co_await s.send({text, 2});
  co_await b.emit({text, 3});
}
weir::stream<row> rows(std::string text) { co_yield {text, 1}; }
