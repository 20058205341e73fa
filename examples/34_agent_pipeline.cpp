// SPDX-License-Identifier: MIT
// A pipeline of agents: ingest, parse, validate, sink. Each stage gets a reference to its source
// and subscribes there. When one crashes, the stages behind it have lost their subscription, and
// those before it are not affected: that is rest_for_one.

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %3d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

/// What every stage has: a subscriber for its output, once there is one, and a log of its
/// lives.
template <class Next, class T>
class stage {
 public:
  explicit stage(const char* name) : name_(name) { say(std::string("+ ") + name_); }
  ~stage() { say(std::string("- ") + name_); }
  void subscribe(weir::agent_ref<Next> reader) { reader_ = std::move(reader); }

 protected:
  void give(T value) {
    if (reader_) reader_->cast(&Next::take, std::move(value));
  }

 private:
  const char* name_;
  std::optional<weir::agent_ref<Next>> reader_;
};

struct reading {
  std::string sensor;
  int value;
};

class parse;
class validate;
class sink;

class ingest : public stage<parse, std::string> {
 public:
  ingest() : stage("ingest") {}
  void line(std::string text) { give(std::move(text)); }
};

class parse : public stage<validate, reading> {
 public:
  explicit parse(weir::agent_ref<ingest> from) : stage("parse") {
    from.cast(&ingest::subscribe, weir::self<parse>());
  }
  void take(const std::string& text) {
    const auto colon = text.find(':');
    give({text.substr(0, colon), std::stoi(text.substr(colon + 1))});
  }
};

class validate : public stage<sink, reading> {
 public:
  explicit validate(weir::agent_ref<parse> from) : stage("validate") {
    from.cast(&parse::subscribe, weir::self<validate>());
  }
  // A bug rather than a bad reading: the author did not think of it.
  void take(const reading& r) {
    if (r.value < -273) throw std::logic_error("colder than possible");
    if (r.value < 100) give(r);
  }
};

/// Collects the two halves of a pair until it is complete. Half a pair must not outlive the
/// `validate` that it came from.
class sink : public stage<sink, reading> {
 public:
  explicit sink(weir::agent_ref<validate> from) : stage("sink") {
    from.cast(&validate::subscribe, weir::self<sink>());
  }
  void take(const reading& r) {
    pair_ += (pair_.empty() ? "" : ", ") + r.sensor + " " + std::to_string(r.value);
    if (++held_ < 2) return;
    say("written: " + pair_);
    pair_.clear();
    held_ = 0;
  }

 private:
  std::string pair_;
  int held_ = 0;
};

task<> program() {
  weir::supervisor sup({.name = "pipeline", .strategy = weir::strategy::rest_for_one});
  auto first = sup.add<ingest>({.name = "ingest"});
  auto second = sup.add<parse>({.name = "parse"}, first);
  auto third = sup.add<validate>({.name = "validate"}, second);
  sup.add<sink>({.name = "sink"}, third);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run());
    for (const char* text : {"attic:31", "cellar:12", "oven:220", "attic:30",  // half of a pair
                             "cellar:-300", "attic:29", "cellar:11"}) {
      co_await weir::sleep(10ms);
      say(text);
      first.cast(&ingest::line, text);
    }
    co_await weir::sleep(10ms);
    for (const auto& child : sup.which_children())  // newest first
      say(std::string(child.name) + ", restarts: " + std::to_string(child.restarts));
    co_await sup.stop();
  });
}

}  // namespace

int main() { weir::sim::run({}, program); }
