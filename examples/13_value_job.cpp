// SPDX-License-Identifier: MIT
// One job with a value: spawn it, do something else, take its result.

#include <cstdio>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> translate(std::string text) {
  co_await weir::sleep(20ms);
  co_return text == "hello" ? "bonjour" : "?";
}

task<> value() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    auto job = s.spawn(translate("hello"));
    say("meanwhile ...");
    const std::string word = co_await job.take();  // moved out, once
    say(word);
    try {
      co_await job.take();
    } catch (const weir::error& e) {
      say(e.code() == weir::errc::already_taken ? "taken before" : e.what());
    }
  });
}

// The handle cancels its job; taking the result then throws cancelled_error.
task<> cancelled() {
  co_await weir::with_scope([](weir::scope& s) -> task<> {
    auto job = s.spawn(translate("good bye"));
    co_await weir::sleep(5ms);
    job.cancel("nobody asks any more");
    try {
      co_await job.take();
    } catch (const weir::cancelled_error& e) {
      say("cancelled: " + e.reason().message);
    }
  });
}

task<> program() {
  std::puts("a value");
  co_await value();
  std::puts("a cancellation");
  co_await cancelled();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
