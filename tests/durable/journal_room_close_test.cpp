// SPDX-License-Identifier: MIT
// An engine that closes while callers wait for disk space. Promise: after `close` every call is
// errc::not_open, also pending ones; none waits for an engine that has ended.
#include "durable/support/refusing_disk.hpp"
#include "durable/support/troubled_disk.hpp"

using namespace durable_test;

namespace {

/// What holds the disk back until the engine is in the middle of closing: then the frames of its
/// runs are destroyed.
refusing_disk* held = nullptr;

task<int> holds(int) {
  struct at_the_end {
    ~at_the_end() { held->let_go = true; }
  };
  const at_the_end guard;
  auto answer = weir::awakeable<int>("answer");
  co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
  co_return co_await answer.wait();
}

task<int> takes(std::string) { co_return 1; }

void add_holders(durable::engine& e) {
  e.add("holds", holds);
  e.add("takes", takes);
}

/// Starts runs until one is refused for want of space.
task<> fill_with_runs(durable::engine& e) {
  for (int i = 0; i < 1000; ++i) {
    const auto code = co_await code_after(
        [&] { return e.start<int>("takes", {.id = std::to_string(i)}, std::string(3000, 'x')); });
    if (code == errc::journal_full) co_return;
  }
  ADD_FAILURE() << "never full";
}

using caller = std::function<task<std::error_code>(durable::engine&, std::string)>;

void close_while(const caller& call) {
  const stage on;
  whole_life([&] {
    refusing_disk disk;
    held = &disk;
    auto use = [&](durable::engine& e) -> task<> {
      (void)co_await e.start<int>("holds", {.id = "holds"}, 1);
      const std::string id = co_await last_noted("id ");
      disk.full = true;
      co_await fill_with_runs(e);
      disk.hold = true;
      auto body = [&](weir::scope& s) -> task<> {
        auto late = s.spawn(call(e, id));
        while (!disk.waits) co_await weir::yield();
        co_await e.close();
        EXPECT_EQ(co_await late, errc::not_open);
      };
      co_await weir::with_scope(body);
    };
    weir::run(with_open_engine(options_with(on, disk), add_holders, use));
  });
}

}  // namespace

TEST(durable_room_close, start_that_waits_for_room_hears_of_the_close) {
  close_while([](durable::engine& e, std::string) -> task<std::error_code> {
    co_return co_await code_after(
        [&] { return e.start<int>("takes", {.id = "late"}, std::string("x")); });
  });
}

TEST(durable_room_close, answer_that_waits_for_room_hears_of_the_close) {
  close_while([](durable::engine& e, std::string id) -> task<std::error_code> {
    co_return co_await code_after([&] { return e.resolve(id, 1); });
  });
}

TEST(durable_room_close, signal_that_waits_for_room_hears_of_the_close) {
  close_while([](durable::engine& e, std::string) -> task<std::error_code> {
    co_return co_await code_after([&] { return e.signal("holds", "x", 1); });
  });
}
