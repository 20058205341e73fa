// SPDX-License-Identifier: MIT
// A small build runner: steps are commands that depend on other steps, at most two run at a time,
// and a display shows the progress. The first step that fails ends the build: what runs is
// cancelled, and its processes are ended.
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <cstddef>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace io = weir::io;

struct build_step {
  std::string name;
  std::vector<std::string> needs;
  io::command what;
};

struct step_failed : std::runtime_error {
  using runtime_error::runtime_error;
};

class build {
 public:
  explicit build(std::vector<build_step> steps) : steps_(std::move(steps)) {}

  weir::task<> run() {
    co_await weir::with_scope([this](weir::scope& s) -> weir::task<> {
      for (const build_step& step : steps_)
        done_.emplace(step.name, s.spawn(run_step(step), {.name = step.name}));
      co_await s.join();
    });
  }

 private:
  // A step waits for those before it, then for one of two places.
  weir::task<> run_step(const build_step& step) {
    co_await weir::checkpoint();  // all steps are known then
    for (const std::string& before : step.needs) co_await done_.at(before);
    auto place = co_await places_.acquire();
    const auto result = co_await io::process::run(step.what);
    if (!result.ok())
      throw step_failed(step.name + " returned " + std::to_string(result.code()) + ": " +
                        result.err());
    show(step.name, result.out());
  }

  void show(const std::string& name, const std::string& output) {
    finished_ += 1;
    std::cout << "[" << finished_ << "/" << steps_.size() << "] " << name;
    if (!output.empty()) std::cout << ": " << output.substr(0, output.find('\n'));
    std::cout << std::endl;
  }

  std::vector<build_step> steps_;
  std::map<std::string, weir::child<void>> done_;
  weir::counting_governor places_{2};
  std::size_t finished_ = 0;
};

weir::task<> run_builds() {
  std::vector<build_step> good;
  good.push_back({"configure", {}, io::command("echo", "3 sources found")});
  good.push_back({"compile a", {"configure"}, io::command("true")});
  good.push_back({"compile b", {"compile a"}, io::command("sh", "-c", "echo $FLAGS")});
  good.back().what.env("FLAGS", "-O2");
  good.push_back({"link", {"compile a", "compile b"}, io::command("tr", "a-z", "A-Z")});
  good.back().what.input("linked\n");
  build first(std::move(good));
  co_await first.run();

  std::vector<build_step> bad;
  bad.push_back({"configure", {}, io::command("true")});
  bad.push_back({"endless test", {"configure"}, io::command("sleep", "1000")});
  bad.push_back({"compile", {"configure"}, io::command("sh", "-c", "echo no ';' >&2; exit 1")});
  bad.push_back({"link", {"compile"}, io::command("true")});
  build second(std::move(bad));
  try {
    co_await second.run();
  } catch (const step_failed& e) {
    std::cout << "the build has failed: " << e.what();
  }
}

int main() { weir::run(run_builds()); }
