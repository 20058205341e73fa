// SPDX-License-Identifier: MIT
// A disk without space. Promises: a payload that cannot be written fails its operation and nothing
// else; "no space: errc::journal_full" lasts exactly as long as there is none.
#include <algorithm>

#include "durable/support/refusing_disk.hpp"
#include "durable/support/stage.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// More than a quarter of a segment, so it gets a file of its own.
const std::string large(20'000, 'x');

task<std::string> gives_back(std::string in) {
  co_await weir::step("look", [] { return 1; });
  co_return in;
}

task<std::size_t> asks_for_two_texts(int) {
  auto answer = weir::awakeable<std::string>("answer");
  co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
  const std::string text = co_await answer.wait();
  const std::string more = co_await weir::signal<std::string>("more").wait();
  co_return text.size() + more.size();
}

task<int> makes_large(int) {
  auto body = [] {
    effect("made");
    return large;
  };
  const std::string made = co_await weir::step("make", body, {.retry = {.attempts = 3}});
  co_return static_cast<int>(made.size());
}

task<int> makes_large_once(int) {
  auto body = [] {
    effect("made");
    return large;
  };
  const std::string made = co_await weir::step_once("make", body);
  co_return static_cast<int>(made.size());
}

task<std::string> ends_large(int) {
  co_await weir::step("small", [] { return 1; });
  co_return large;
}

task<std::string> calls_large(int) {
  co_await weir::sleep(1s);
  try {
    co_return co_await weir::call<std::string>("gives_back", large, {.id = "called"});
  } catch (const weir::error& e) {
    co_return e.code() == errc::journal_full ? "no room" : e.what();
  }
}

task<std::string> sends_large(int) {
  co_await weir::sleep(1s);
  try {
    co_await weir::send("gives_back", large, {.id = "sent"});
    co_return "sent";
  } catch (const weir::error& e) {
    co_return e.code() == errc::journal_full ? "no room" : e.what();
  }
}

void add_large_ones(durable::engine& e) {
  e.add("gives_back", gives_back);
  e.add("asks", asks_for_two_texts);
  e.add("makes_large", makes_large);
  e.add("makes_large_once", makes_large_once);
  e.add("ends_large", ends_large);
  e.add("calls_large", calls_large);
  e.add("sends_large", sends_large);
}

/// No room for another file, but for all that goes into the present segment.
void fill_disk(sim::world& w) { w.disk().set({.space = 1}); }

/// How often this loop has reported that there is no room for `object`.
long full_events(std::string_view object) {
  const auto events = weir::recent_events().events;
  return std::count_if(events.begin(), events.end(), [&](const auto& e) {
    return e.name == std::string_view("journal_full") && e.object == object;
  });
}

/// Small things still work.
task<> expect_alive(durable::engine& e, std::string id) {
  auto run = co_await e.start<std::string>("gives_back", {.id = id}, std::string("small"));
  EXPECT_EQ(co_await run.result(), "small");
}

/// A process on a disk of its own, and, after a power failure, another one.
void with_world(std::function<task<>(durable::engine&, sim::world&)> use, user after = nullptr) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(
      with_open_engine(on_disk(w), add_large_ones, [&](durable::engine& e) { return use(e, w); }));
  w.disk().set({});
  w.disk().crash();
  if (after) w.run(with_open_engine(on_disk(w), add_large_ones, std::move(after)));
}

}  // namespace

TEST(durable_room, an_input_that_cannot_be_written_is_refused_to_its_caller_only) {
  with_world(
      [](durable::engine& e, sim::world& w) -> task<> {
        co_await expect_alive(e, "before");
        fill_disk(w);
        auto start = [&] { return e.start<std::string>("gives_back", {.id = "large"}, large); };
        EXPECT_EQ(co_await code_after(start), errc::journal_full);
        EXPECT_FALSE(e.get("large").has_value());
        co_await expect_alive(e, "meanwhile");
        w.disk().set({});
        auto run = co_await e.start<std::string>("gives_back", {.id = "large"}, large);
        EXPECT_EQ(co_await run.result(), large);
      },
      [](durable::engine& e) -> task<> {
        EXPECT_EQ(e.list({.state = run_state::completed}).size(), 3u);
        co_return;
      });
}

TEST(durable_room, an_error_of_the_disk_in_a_payload_is_refused_to_its_caller_only) {
  with_world([](durable::engine& e, sim::world& w) -> task<> {
    w.disk().set({.eio = 1});
    auto start = [&] { return e.start<std::string>("gives_back", {.id = "large"}, large); };
    EXPECT_EQ(co_await code_after(start), errc::journal_failed);
    w.disk().set({});
    co_await expect_alive(e, "afterwards");
  });
}

TEST(durable_room, an_answer_or_signal_that_cannot_be_written_may_be_given_again) {
  with_world([](durable::engine& e, sim::world& w) -> task<> {
    auto run = co_await e.start<std::size_t>("asks", {.id = "asks"}, 1);
    const std::string id = co_await last_noted("id ");
    fill_disk(w);
    auto resolve = [&] { return e.resolve(id, large); };
    EXPECT_EQ(co_await code_after(resolve), errc::journal_full);
    auto signal = [&] { return e.signal("asks", "more", large); };
    EXPECT_EQ(co_await code_after(signal), errc::journal_full);
    w.disk().set({});
    EXPECT_TRUE(co_await e.resolve(id, large));
    EXPECT_FALSE(co_await e.resolve(id, large));
    EXPECT_TRUE(co_await e.signal("asks", "more", large));
    EXPECT_EQ(co_await run.result(), 2 * large.size());
  });
}

// What was done is not done again because there is no space for its result.
TEST(durable_room, the_result_of_a_step_waits_for_room_and_its_body_is_not_called_again) {
  for (const char* handler : {"makes_large", "makes_large_once"}) {
    with_world(
        [handler](durable::engine& e, sim::world& w) -> task<> {
          fill_disk(w);
          auto run = co_await e.start<int>(handler, {.id = "r"}, 1);
          co_await weir::sleep(5min);
          EXPECT_EQ(e.get("r")->state, run_state::running);
          EXPECT_EQ(full_events("r"), 1) << handler;
          co_await expect_alive(e, "meanwhile");
          const weir::time_point then = weir::now();
          w.disk().set({});
          EXPECT_EQ(co_await run.result(), 20'000) << handler;
          EXPECT_LE(weir::now() - then, 1s);
          EXPECT_EQ(times("made"), 1) << handler;
        },
        [](durable::engine& e) -> task<> {
          EXPECT_EQ(e.get("r")->state, run_state::completed);
          co_return;
        });
  }
}

TEST(durable_room, a_run_whose_step_waits_for_room_can_be_cancelled) {
  for (const char* handler : {"makes_large", "makes_large_once"}) {
    with_world([handler](durable::engine& e, sim::world& w) -> task<> {
      fill_disk(w);
      auto run = co_await e.start<int>(handler, {.id = "r"}, 1);
      co_await weir::sleep(1min);
      run.cancel();
      EXPECT_EQ(co_await code_after([&] { return run.result(); }), errc::cancelled);
      EXPECT_EQ(times("made"), 1);
    });
  }
}

TEST(durable_room, a_step_that_waits_for_room_when_the_engine_closes_is_done_by_the_next) {
  with_world(
      [](durable::engine& e, sim::world& w) -> task<> {
        fill_disk(w);
        (void)co_await e.start<int>("makes_large", {.id = "r"}, 1);
        (void)co_await e.start<int>("makes_large_once", {.id = "once"}, 1);
        co_await weir::sleep(1min);
      },
      [](durable::engine& e) -> task<> {
        auto run = co_await e.start<int>("makes_large", {.id = "r"}, 1);
        EXPECT_EQ(co_await run.result(), 20'000);
        auto once = co_await e.start<int>("makes_large_once", {.id = "once"}, 1);
        const auto error = co_await test_support::attempt([&] { return once.result(); });
        EXPECT_TRUE(test_support::contains(test_support::what_of(error),
                                           "whether it was done is not known"));
      });
}

// An error of the disk is a failed attempt, and the next one only writes the result.
TEST(durable_room, a_result_that_the_disk_refuses_is_written_again_by_the_policy_of_its_step) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  refusing_disk disk(w.disk());
  auto options = on_disk(w);
  options.disk = &disk;
  w.run(with_open_engine(options, add_large_ones, [&](durable::engine& e) -> task<> {
    disk.refuse("blob", EIO, 2);
    auto run = co_await e.start<int>("makes_large", {.id = "r"}, 1);
    EXPECT_EQ(co_await run.result(), 20'000);
    EXPECT_EQ(disk.refusals, 0);
    EXPECT_EQ(times("made"), 1);
    disk.refuse("blob", EIO, 3);
    auto next = co_await e.start<int>("makes_large", {.id = "s"}, 1);
    const auto error = co_await test_support::attempt([&] { return next.result(); });
    EXPECT_TRUE(test_support::contains(test_support::what_of(error),
                                       "the result of step 'make' of run 's'"));
    disk.refuse("blob", EIO, 1);
    auto once = co_await e.start<int>("makes_large_once", {.id = "t"}, 1);
    const auto refused = co_await test_support::attempt([&] { return once.result(); });
    EXPECT_TRUE(test_support::contains(test_support::what_of(refused),
                                       "the result of step 'make' of run 't'"));
    EXPECT_EQ(times("made"), 3);
  }));
}

TEST(durable_room, a_run_whose_result_cannot_be_written_fails_and_says_so) {
  with_world(
      [](durable::engine& e, sim::world& w) -> task<> {
        fill_disk(w);
        auto run = co_await e.start<std::string>("ends_large", {.id = "r"}, 1);
        EXPECT_EQ(co_await code_after([&] { return run.result(); }), errc::journal_full);
        EXPECT_EQ(e.get("r")->state, run_state::failed);
        EXPECT_TRUE(test_support::contains(e.get("r")->message, "20"));
        co_await expect_alive(e, "afterwards");
      },
      [](durable::engine& e) -> task<> {
        EXPECT_EQ(e.get("r")->state, run_state::failed);
        EXPECT_EQ(e.get("afterwards")->state, run_state::completed);
        co_return;
      });
}

TEST(durable_room, a_call_or_send_whose_input_cannot_be_written_fails_where_it_is_made) {
  for (const char* handler : {"calls_large", "sends_large"}) {
    with_world(
        [handler](durable::engine& e, sim::world& w) -> task<> {
          auto run = co_await e.start<std::string>(handler, {.id = "r"}, 1);
          fill_disk(w);
          EXPECT_EQ(co_await run.result(), "no room") << handler;
          co_await expect_alive(e, "afterwards");
        },
        [handler](durable::engine& e) -> task<> {
          EXPECT_EQ(e.get("r")->state, run_state::completed) << handler;
          EXPECT_FALSE(e.get("called").has_value());
          EXPECT_FALSE(e.get("sent").has_value());
          co_return;
        });
  }
}

namespace {

/// Starts runs until one is refused.
task<> start_until_refused(durable::engine& e, std::string prefix) {
  for (int i = 0; i < 20'000; ++i) {
    auto start = [&] {
      return e.start<std::string>("gives_back", {.id = prefix + std::to_string(i)},
                                  std::string("small"));
    };
    const std::error_code code = co_await code_after(start);
    if (!code) continue;
    EXPECT_EQ(code, errc::journal_full) << code.message();
    co_return;
  }
  ADD_FAILURE() << "never refused";
}

}  // namespace

// Room is looked for before a start is refused.
TEST(durable_room, a_start_is_taken_as_soon_as_there_is_room_again) {
  with_world([](durable::engine& e, sim::world& w) -> task<> {
    for (int round = 0; round < 2; ++round) {
      fill_disk(w);
      co_await start_until_refused(e, "r" + std::to_string(round) + "-");
      EXPECT_EQ(full_events("/journal"), round + 1);
      const weir::time_point then = weir::now();
      w.disk().set({});
      auto start = [&] {
        return e.start<std::string>("gives_back", {.id = "again" + std::to_string(round)},
                                    std::string("small"));
      };
      EXPECT_FALSE(co_await code_after(start));
      EXPECT_EQ(weir::now(), then);
    }
  });
}

// And by time, so that the next segment is there before anybody asks.
TEST(durable_room, room_is_looked_for_every_second) {
  with_world([](durable::engine& e, sim::world& w) -> task<> {
    fill_disk(w);
    co_await start_until_refused(e, "r");
    co_await weir::sleep(5s);
    const auto segments = [&] { return w.disk().list("/journal").size(); };
    const std::size_t before = segments();
    w.disk().set({});
    co_await weir::sleep(1500ms);
    EXPECT_EQ(segments(), before + 1);
  });
}

namespace {

/// Writes to the log for as long as it is told to.
task<int> talks(int n) {
  for (int i = 0; i < n; ++i)
    (void)co_await weir::step("say", [] { return std::string(8'000, 'y'); });
  co_return n;
}

}  // namespace

TEST(durable_room, a_run_that_has_used_up_the_log_waits_for_room_and_ends_well) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  w.run(with_open_engine(
      on_disk(w), [](durable::engine& e) { e.add("talks", talks); },
      [&](durable::engine& e) -> task<> {
        auto run = co_await e.start<int>("talks", {.id = "r"}, 40);
        fill_disk(w);
        co_await weir::sleep(10s);
        EXPECT_EQ(e.get("r")->state, run_state::running);
        auto start = [&] { return e.start<int>("talks", {.id = "s"}, 1); };
        EXPECT_EQ(co_await code_after(start), errc::journal_full);
        auto signal = [&] { return e.signal("r", "x", 1); };
        EXPECT_EQ(co_await code_after(signal), errc::journal_full);
        w.disk().set({});
        EXPECT_EQ(co_await run.result(), 40);
      }));
  w.disk().crash();
  w.run(with_open_engine(
      on_disk(w), [](durable::engine& e) { e.add("talks", talks); },
      [&](durable::engine& e) -> task<> {
        EXPECT_EQ(e.get("r")->state, run_state::completed);
        EXPECT_FALSE(e.get("s").has_value());
        co_return;
      }));
}

TEST(durable_room, an_engine_without_room_can_be_closed_and_goes_on_when_it_is_opened_again) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  const auto add = [](durable::engine& e) { e.add("talks", talks); };
  w.run(with_open_engine(on_disk(w), add, [&](durable::engine& e) -> task<> {
    (void)co_await e.start<int>("talks", {.id = "r"}, 40);
    fill_disk(w);
    co_await weir::sleep(10s);
  }));
  w.disk().set({});
  w.disk().crash();
  w.run(with_open_engine(on_disk(w), add, [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("talks", {.id = "r"}, 40);
    EXPECT_EQ(co_await run.result(), 40);
  }));
}
