// SPDX-License-Identifier: MIT
// Children, their futures, and what a failure does to the others.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> fetch(std::string what, weir::duration delay) {
  co_await weir::sleep(delay);
  if (what == "broken") throw std::runtime_error("cannot fetch");
  co_return what;
}

task<> futures() {
  auto body = [](weir::scope& s) -> task<> {
    auto page = s.spawn(fetch("page", 5ms), {.name = "page"});
    say(page.done() ? "done already?" : "never runs inline");
    say(co_await page);  // const std::string&, any number of times
    say(co_await page);
    say(co_await std::move(page));  // the string itself, once
  };
  co_await weir::with_scope(body);
}

// What the children use is declared before the scope, or the body ends with `join`.
task<> joining() {
  auto body = [](weir::scope& s) -> task<> {
    std::string collected;
    auto collect = [&](const char* what) -> task<> { collected += co_await fetch(what, 1ms); };
    s.spawn(collect("a"));
    s.spawn(collect("b"));
    co_await s.idle();  // no child left; the scope stays open
    s.spawn(collect("c"));
    co_await s.join();  // no child left; the scope is closed
    say(collected);
  };
  co_await weir::with_scope(body);
}

// `isolate`: a failure stays in its future, unless that is not awaited.
task<> isolated_failures() {
  auto body = [](weir::scope& s) -> task<> {
    auto broken = s.spawn(fetch("broken", 1ms));
    auto whole = s.spawn(fetch("whole", 2ms));
    std::string trouble;
    try {
      co_await broken;
    } catch (const std::runtime_error& e) {
      trouble = e.what();
    }
    say(trouble + ", but " + co_await whole + " is there");
  };
  co_await weir::with_scope({.failure = weir::failure::isolate}, body);
}

// `errors::all`: every error, in the order in which they happened.
task<> all_errors() {
  auto body = [](weir::scope& s) -> task<> {
    s.spawn(fetch("broken", 2ms));
    s.spawn(fetch("broken", 1ms));
    co_await s.idle();
  };
  try {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              body);
  } catch (const weir::error_group& group) {
    say(group.what());
  }
}

// How an operation ended, as a value: nothing is thrown, and a cancellation is visible.
task<> outcomes() {
  auto cancels_itself = [](weir::scope& s) -> task<int> {
    s.cancel("changed my mind");
    co_await weir::sleep(1ms);
    co_return 1;
  };
  const auto out = co_await weir::settle(weir::with_scope(cancels_itself));
  say(out.match([](int) { return std::string("a value"); },
                [](const std::exception_ptr&) { return std::string("an error"); },
                [](const weir::cancel_reason& why) { return "cancelled: " + why.message; }));
}

task<> bounded() {
  auto body = [](weir::scope& s) -> task<> {
    s.spawn(fetch("first", 1ms));
    s.spawn(fetch("second", 1ms));
    say(s.try_spawn(fetch("third", 1ms)) ? "room for a third?" : "full");
    co_await s.idle();
  };
  co_await weir::with_scope({.name = "pair", .max_children = 2}, body);
}

const weir::local<std::string> tenant("nobody");

task<> who() {
  say("on behalf of " + tenant.get());
  co_return;
}

// Looked up along the tree of scopes: by called functions and by children.
task<> locals() {
  co_await who();
  co_await weir::with_local(tenant, "alice", who());
}

task<> program() {
  std::puts("futures");
  co_await futures();
  std::puts("join and idle");
  co_await joining();
  std::puts("failures");
  co_await isolated_failures();
  co_await all_errors();
  std::puts("outcomes");
  co_await outcomes();
  std::puts("bounded");
  co_await bounded();
  std::puts("locals");
  co_await locals();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
