// SPDX-License-Identifier: MIT
// The smallest program that needs the durable library and what it stands on.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <weir/durable.hpp>
#include <weir/weir.hpp>

struct question {
  int value = 0;
};
WEIR_DESCRIBE(question, value)

weir::task<int> answer(question q) {
  co_return co_await weir::step("answer", [&] { return 2 * q.value; });
}

weir::task<int> ask(std::string directory) {
  auto body = [&](weir::durable::engine& e) -> weir::task<int> {
    e.add("answer", answer);
    co_await e.open();
    const question q{21};
    auto run = co_await e.start<int>("answer", {.id = "q"}, q);
    co_return co_await run.result();
  };
  co_return co_await weir::durable::with_engine({.path = directory, .segment_bytes = 65536}, body);
}

int main() {
  std::string directory = (std::filesystem::temp_directory_path() / "weir-consume-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 2;
  const int got = weir::run(ask(directory));
  std::filesystem::remove_all(directory);
  return got == 42 ? 0 : 1;
}
