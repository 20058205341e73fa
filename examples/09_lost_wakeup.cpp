// SPDX-License-Identifier: MIT
// A lost wake-up: a channel written by hand that checks for a value, awaits something else, and
// then registers the receiver. If a value is sent in between, nothing wakes the receiver.

#include <cstdio>
#include <deque>
#include <string>
#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

/// Stands for a call that nearly always completes at once.
auto quick_call() { return weir::checkpoint(); }

/// Hands values to one receiver.
class channel {
 public:
  void send(int value) {
    values_.push_back(value);
    receiver_.complete();  // does nothing without a registered receiver
  }

  task<int> receive() {
    if (values_.empty()) {
      co_await quick_call();  // counts how often a receiver waits
      co_await weir::suspend<void>([this](weir::resumer<void> r) { receiver_ = std::move(r); });
    }
    co_return take();
  }

  // The fix: checking and registering are one step, without an await in between.
  task<int> receive_repaired() {
    co_await weir::suspend<void>([this](weir::resumer<void> r) {
      receiver_ = std::move(r);
      if (!values_.empty()) receiver_.complete();
    });
    co_return take();
  }

 private:
  int take() {
    const int value = values_.front();
    values_.pop_front();
    return value;
  }

  std::deque<int> values_;
  weir::resumer<void> receiver_;
};

task<> make_and_send(channel& to) {
  co_await quick_call();  // makes the value
  co_await quick_call();  // and writes it to a log
  to.send(7);
}

using receiver = task<int> (channel::*)();

task<> send_and_receive(receiver receive) {
  channel numbers;
  auto body = [&](weir::scope& s) -> task<> {
    auto got = s.spawn((numbers.*receive)(), {.name = "receiver"});
    s.spawn(make_and_send(numbers), {.name = "sender"});
    weir::sim::always("what was sent is received", co_await got == 7);
  };
  co_await weir::with_scope({.name = "talk"}, body);
}

task<> buggy() { return send_and_receive(&channel::receive); }
task<> repaired() { return send_and_receive(&channel::receive_repaired); }

}  // namespace

int main() {
  std::puts("in the order of production");
  weir::sim::run({}, buggy);
  say("passes");

  std::puts("every run with at most two preemptions");
  const weir::sim::explore_options every{.runs = 100'000, .strategy = weir::sim::dfs(2)};
  const auto report = weir::sim::explore(every, buggy);
  say(report.ok() ? "nothing found?" : report.message());
  say("preemptions that it needs: " + std::to_string(report.trace().preemptions()));
  const bool waits = report.tree().find("waits on suspend") != std::string::npos;
  say(waits ? "in the tree the receiver waits on suspend" : "nobody waits?");

  std::puts("repaired");
  const auto after = weir::sim::explore(every, repaired);
  say(after.ok() && after.exhausted() ? "passes every one of them" : "not shown?");
}
