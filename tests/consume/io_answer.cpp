// SPDX-License-Identifier: MIT
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <string>

namespace {

weir::task<> answer(weir::io::socket& c) { co_await c.write_all("42\n"); }

weir::task<int> ask() {
  auto l = co_await weir::io::listen();
  co_return co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
    auto serve = [&]() -> weir::task<> { co_await weir::io::serve(l, answer); };
    s.background(serve);
    auto c = co_await weir::io::connect("127.0.0.1", l.port());
    const std::string line = co_await c.read_until("\n", 10);
    co_return std::stoi(line);
  });
}

}  // namespace

int main() { return weir::run(ask()) == 42 ? 0 : 1; }
