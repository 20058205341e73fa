// SPDX-License-Identifier: MIT
// Keyed objects. Promises: one exclusive handler per key at a time, in the order of the starts;
// keys are independent; state, sends and result of a turn are committed together; shared handlers
// read what was committed last.
#include <map>

#include "durable/support/stage.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

task<int> add_to_cart(int n) {
  auto total = weir::stored<int>("total");
  const std::optional<int> old = co_await total.get();
  total.set(old.value_or(0) + n);
  const std::optional<int> own = co_await total.get();
  co_return own.value_or(-1);
}

task<int> total_of_cart() {
  auto total = weir::stored<int>("total");
  const std::optional<int> now = co_await total.get();
  co_return now.value_or(0);
}

task<bool> clear_cart() {
  auto total = weir::stored<int>("total");
  total.clear();
  const std::optional<int> now = co_await total.get();
  co_return now.has_value();
}

task<std::string> slow_turn(std::string name) {
  note("begin " + weir::this_key() + " " + name);
  co_await weir::sleep(1h);
  note("end " + weir::this_key() + " " + name);
  co_return name;
}

task<std::string> told_when_it_began(int) {
  const auto began = weir::wall_now();
  co_await weir::sleep(1h);
  co_return std::to_string((began - day0) / 1min) + " " +
      std::to_string((weir::wall_now() - day0) / 1min);
}

void add_cart(durable::engine& e) {
  e.add_object("cart", {{"add", add_to_cart},
                        {"clear", clear_cart},
                        {"slow", slow_turn},
                        {"told", told_when_it_began},
                        {"total", durable::shared(total_of_cart)}});
}

task<int> total_at(durable::engine& e, std::string key) {
  auto run = co_await e.start<int>("cart/total", {.key = key});
  co_return co_await run.result();
}

task<int> added(durable::engine& e, std::string key, int n) {
  auto run = co_await e.start<int>("cart/add", {.key = key}, n);
  co_return co_await run.result();
}

template <class F>
std::error_code refused_by(F&& f) {
  return test_support::code_of(test_support::thrown_by(std::forward<F>(f)));
}

}  // namespace

TEST(durable_object, keeps_its_state_between_turns_and_lives) {
  const stage on;
  session(on, add_cart, [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await added(e, "k", 5), 5);
    EXPECT_EQ(co_await added(e, "k", 6), 11);
    EXPECT_EQ(co_await added(e, "other", 1), 1);
    EXPECT_EQ(co_await total_at(e, "k"), 11);
  });
  session(on, add_cart, [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await total_at(e, "k"), 11);
    EXPECT_EQ(co_await total_at(e, "other"), 1);
    EXPECT_EQ(co_await total_at(e, "none"), 0);
    auto cleared = co_await e.start<bool>("cart/clear", {.key = "k"});
    EXPECT_FALSE(co_await cleared.result());
  });
  session(on, add_cart, [](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await total_at(e, "k"), 0);
    EXPECT_EQ(co_await added(e, "k", 2), 2);
  });
}

TEST(durable_object, turns_of_one_key_run_one_at_a_time_in_order_and_keys_are_independent) {
  const stage on;
  session(on, add_cart, [](durable::engine& e) -> task<> {
    const auto before = weir::now();
    std::vector<durable::run_handle<std::string>> all;
    for (const char* name : {"1", "2", "3"})
      for (const char* key : {"a", "b"})
        all.push_back(co_await e.start<std::string>("cart/slow", {.key = key}, name));
    for (const auto& run : all) (void)co_await run.result();
    EXPECT_EQ(weir::now() - before, 3h);
  });
  EXPECT_EQ(noted("begin a "), (lines{"1", "2", "3"}));
  EXPECT_EQ(noted("end b "), (lines{"1", "2", "3"}));
  lines of_a;
  for (const std::string& line : ledger())
    if (test_support::contains(line, " a ")) of_a.push_back(line);
  EXPECT_EQ(of_a, (lines{"begin a 1", "end a 1", "begin a 2", "end a 2", "begin a 3", "end a 3"}));
}

TEST(durable_object, a_turn_that_waited_begins_at_the_time_when_it_begins_also_when_replayed) {
  const stage on;
  auto start = [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("cart/slow", {.id = "s", .key = "k"}, "x");
    (void)co_await e.start<std::string>("cart/told", {.id = "t", .key = "k"}, 0);
  };
  session(on, add_cart, [&](durable::engine& e) -> task<> {
    co_await start(e);
    co_await weir::sleep(90min);
    EXPECT_EQ(e.get("t")->state, run_state::running);
  });
  session(
      on, add_cart,
      [&](durable::engine& e) -> task<> {
        auto told = co_await e.start<std::string>("cart/told", {.id = "t", .key = "k"}, 0);
        EXPECT_EQ(co_await told.result(), "60 120");
      },
      100min);
}

TEST(durable_object, a_queued_turn_is_listed_as_suspended_and_says_what_it_waits_for) {
  const stage on;
  session(on, add_cart, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("cart/slow", {.id = "first", .key = "k"}, "1");
    auto second = co_await e.start<std::string>("cart/slow", {.id = "second", .key = "k"}, "2");
    co_await weir::sleep(1min);
    const auto info = e.get("second");
    EXPECT_EQ(info->state, run_state::suspended);
    for (const char* part : {"waits for its turn", "key 'k' of object 'cart'", "'first'"})
      EXPECT_TRUE(test_support::contains(info->message, part)) << info->message;
    EXPECT_EQ(e.list({.state = run_state::suspended}).size(), 1u);
    (void)co_await second.result();
    EXPECT_EQ(e.get("second")->message, "");
  });
}

TEST(durable_object, a_queued_turn_that_is_cancelled_never_begins_and_others_keep_their_order) {
  const stage on;
  session(on, add_cart, [](durable::engine& e) -> task<> {
    std::vector<durable::run_handle<std::string>> all;
    for (const char* id : {"1", "2", "3"})
      all.push_back(co_await e.start<std::string>("cart/slow", {.id = id, .key = "k"}, id));
    co_await weir::sleep(1min);
    EXPECT_TRUE(all[1].cancel("not needed"));
    EXPECT_FALSE(all[1].cancel());
    EXPECT_EQ(co_await ending_of(all[1]), "cancelled");
    EXPECT_EQ(e.get("2")->message, "not needed");
    EXPECT_EQ(co_await all[2].result(), "3");
  });
  EXPECT_EQ(noted("begin k "), (lines{"1", "3"}));
}

TEST(durable_object, a_delayed_send_joins_the_inbox_when_its_delay_is_over) {
  const stage on;
  auto sends = [](int) -> task<int> {
    const std::string late = "late";
    (void)co_await weir::send("cart/slow", late, {.delay = 90min, .id = "late", .key = "k"});
    co_return 0;
  };
  auto setup = [&](durable::engine& e) {
    add_cart(e);
    e.add("sends", sends);
  };
  auto start = [](durable::engine& e) -> task<> {
    auto sent = co_await e.start<int>("sends", {.id = "s"}, 0);
    (void)co_await sent.result();
    for (const char* id : {"1", "2"})
      (void)co_await e.start<std::string>("cart/slow", {.id = id, .key = "k"}, id);
    co_await weir::sleep(95min);  // "2" has the turn, "late" has joined
    (void)co_await e.start<std::string>("cart/slow", {.id = "3", .key = "k"}, "3");
    co_await weir::sleep(1min);
  };
  auto finish = [](durable::engine& e) -> task<> {
    auto last = co_await e.start<std::string>("cart/slow", {.id = "3", .key = "k"}, "3");
    EXPECT_EQ(co_await last.result(), "3");
  };
  session(on, setup, start);
  session(on, setup, finish, 97min);
  EXPECT_EQ(noted("end k "), (lines{"1", "2", "late", "3"}));
}

TEST(durable_object, a_failed_or_cancelled_turn_leaves_no_state_and_no_sends_but_its_calls) {
  const stage on;
  auto turn = [](std::string what) -> task<int> {
    auto total = weir::stored<int>("total");
    total.set(100);
    const int one = 1;
    (void)co_await weir::send("cart/add", one, {.key = "sent"});
    (void)co_await weir::send("cart/add", one, {.delay = 1min, .key = "sent"});
    (void)co_await weir::call<int>("cart/add", one, {.key = "called"});
    note("turn " + what);
    if (what == "fail") throw weir::terminal_error("no");
    if (what == "hang") co_await weir::sleep(100h);
    co_return 1;
  };
  auto setup = [&](durable::engine& e) {
    add_cart(e);
    e.add_object("desk", {{"do", turn}, {"total", durable::shared(total_of_cart)}});
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto fails = co_await e.start<int>("desk/do", {.key = "k"}, "fail");
    auto hangs = co_await e.start<int>("desk/do", {.key = "k"}, "hang");
    const auto error = co_await test_support::attempt([&] { return fails.result(); });
    EXPECT_EQ(test_support::code_of(error), errc::terminal);
    co_await until_noted("turn hang");
    EXPECT_TRUE(hangs.cancel());
    EXPECT_TRUE(co_await test_support::attempt([&] { return hangs.result(); }));
    co_await weir::sleep(1h);
    EXPECT_EQ(co_await total_at(e, "sent"), 0);
    EXPECT_EQ(co_await total_at(e, "called"), 2);
    auto seen = co_await e.start<int>("desk/total", {.key = "k"});
    EXPECT_EQ(co_await seen.result(), 0);
    auto well = co_await e.start<int>("desk/do", {.key = "k"}, "well");
    EXPECT_EQ(co_await well.result(), 1);
    co_await weir::sleep(1h);
    EXPECT_EQ(co_await total_at(e, "sent"), 2);
    auto kept = co_await e.start<int>("desk/total", {.key = "k"});
    EXPECT_EQ(co_await kept.result(), 100);
  });
}

TEST(durable_object, a_shared_handler_runs_beside_a_turn_and_sees_what_was_committed_last) {
  const stage on;
  auto slow_add = [](int n) -> task<int> {
    auto total = weir::stored<int>("total");
    const std::optional<int> old = co_await total.get();
    total.set(old.value_or(0) + n);
    co_await weir::sleep(1h);
    co_return 0;
  };
  auto looks_twice = []() -> task<std::string> {
    auto total = weir::stored<int>("total");
    const std::optional<int> first = co_await total.get();
    co_await weir::sleep(90min);
    const std::optional<int> second = co_await total.get();
    co_await weir::step("pause", [] { effect("looked"); });
    co_return std::to_string(first.value_or(0)) + " " + std::to_string(second.value_or(0));
  };
  auto setup = [&](durable::engine& e) {
    e.add_object("box", {{"add", slow_add}, {"look", durable::shared(looks_twice)}});
  };
  life_that_dies_in("looked", [&] {
    session(on, setup, [](durable::engine& e) -> task<> {
      (void)co_await e.start<int>("box/add", {.id = "a", .key = "k"}, 1);
      (void)co_await e.start<int>("box/add", {.id = "b", .key = "k"}, 10);
      auto look = co_await e.start<std::string>("box/look", {.id = "look", .key = "k"});
      (void)co_await look.result();
    });
  });
  // "b" is committed before the shared handler is replayed: it reads again what it has read.
  session(
      on, setup,
      [](durable::engine& e) -> task<> {
        auto b = co_await e.start<int>("box/add", {.id = "b", .key = "k"}, 10);
        (void)co_await b.result();
        auto look = co_await e.start<std::string>("box/look", {.id = "look", .key = "k"});
        EXPECT_EQ(co_await look.result(), "0 1");
        auto now = co_await e.start<std::string>("box/look", {.key = "k"});
        EXPECT_EQ(co_await now.result(), "11 11");
      },
      10h);
}

TEST(durable_object, misuse_is_refused_with_its_code) {
  const stage on;
  std::map<std::string, std::error_code> codes;
  auto code_of_stored = [&codes](std::string where) {
    return [&codes, where] { codes[where] = refused_by([] { weir::stored<int>("x").set(1); }); };
  };
  auto shared_sets = [&]() -> task<> {
    codes["set"] = refused_by([] { weir::stored<int>("x").set(1); });
    codes["clear"] = refused_by([] { weir::stored<int>("x").clear(); });
    co_return;
  };
  auto plain = [&]() -> task<> {
    codes["plain"] = refused_by([] { (void)weir::stored<int>("x"); });
    codes["key"] = refused_by([] { (void)weir::this_key(); });
    co_return;
  };
  auto steps = [&]() -> task<std::string> {
    co_await weir::step("s", code_of_stored("step"));
    const std::string key = co_await weir::step("k", [] { return weir::this_key(); });
    co_return key + weir::this_key();
  };
  auto setup = [&](durable::engine& e) {
    e.add("plain", plain);
    e.add_object("o", {{"set", durable::shared(shared_sets)}, {"steps", steps}});
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto shared = co_await e.start("o/set", {.key = "k"});
    co_await shared.result();
    auto no_object = co_await e.start("plain");
    co_await no_object.result();
    auto in_step = co_await e.start<std::string>("o/steps", {.key = "k"});
    EXPECT_EQ(co_await in_step.result(), "kk");
  });
  EXPECT_EQ(codes["set"], errc::read_only);
  EXPECT_EQ(codes["clear"], errc::read_only);
  EXPECT_EQ(codes["plain"], errc::no_object);
  EXPECT_EQ(codes["key"], errc::no_object);
  EXPECT_EQ(codes["step"], errc::inside_step);
  EXPECT_EQ(refused_by([] { (void)weir::stored<int>("x"); }), errc::no_object);
  EXPECT_EQ(refused_by([] { (void)weir::this_key(); }), errc::no_object);
}

TEST(durable_object, a_key_is_required_for_its_handlers_and_refused_for_others) {
  const stage on;
  auto calls = [](std::string key) -> task<std::string> {
    const int n = 1;
    try {
      (void)co_await weir::call<int>("cart/add", n, {.key = key});
    } catch (const weir::error& e) {
      co_return e.what();
    }
    co_return "added";
  };
  auto setup = [&](durable::engine& e) {
    add_cart(e);
    e.add("calls", calls);
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto code = [&](const char* handler, durable::start_options how) -> task<std::error_code> {
      const auto error =
          co_await test_support::attempt([&] { return e.start<int>(handler, how, 1); });
      co_return test_support::code_of(error);
    };
    EXPECT_EQ(co_await code("cart/add", {}), errc::invalid_argument);
    EXPECT_EQ(co_await code("calls", {.key = "k"}), errc::invalid_argument);
    EXPECT_EQ(co_await code("cart/none", {.key = "k"}), errc::unknown_handler);
    EXPECT_EQ(co_await added(e, "k", 1), 1);
    (void)co_await e.start<int>("cart/add", {.id = "r", .key = "k"}, 1);
    EXPECT_EQ(co_await code("cart/add", {.id = "r", .key = "k2"}), errc::id_in_use);
    auto without = co_await e.start<std::string>("calls", {}, "");
    EXPECT_TRUE(test_support::contains(co_await without.result(), "give the key"));
    auto with = co_await e.start<std::string>("calls", {}, "k");
    EXPECT_EQ(co_await with.result(), "added");
    EXPECT_EQ(refused_by([&] { e.add_object("o", {{"a/b", add_to_cart}}); }),
              errc::invalid_argument);
    EXPECT_EQ(refused_by([&] { e.add("cart/add", add_to_cart, {.version = 2}); }),
              errc::invalid_argument);
  });
}

TEST(durable_object, an_idempotency_key_counts_per_key_of_the_object) {
  const stage on;
  for (int life = 0; life < 2; ++life) {
    session(on, add_cart, [](durable::engine& e) -> task<> {
      for (const char* key : {"a", "b", "a"}) {
        auto run = co_await e.start<int>("cart/add", {.key = key, .idempotency = "once"}, 3);
        EXPECT_EQ(co_await run.result(), 3);
      }
      EXPECT_EQ(co_await total_at(e, "a"), 3);
      EXPECT_EQ(co_await total_at(e, "b"), 3);
    });
  }
}

TEST(durable_object, a_call_of_its_own_key_is_refused_and_names_the_circle) {
  const stage on;
  auto calls = [](std::string key) -> task<std::string> {
    try {
      co_return co_await weir::call<std::string>("o/calls", key, {.key = key});
    } catch (const weir::error& e) {
      co_return e.what();
    }
  };
  auto setup = [&](durable::engine& e) { e.add_object("o", {{"calls", calls}}); };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto self = co_await e.start<std::string>("o/calls", {.id = "self", .key = "k"}, "k");
    const std::string text = co_await self.result();
    for (const char* part : {"'self'", "would wait for itself", "key 'k' of object 'o'", "behind"})
      EXPECT_TRUE(test_support::contains(text, part)) << text;
    // "other" calls "k" of the same object, and that one itself.
    auto other = co_await e.start<std::string>("o/calls", {.id = "other", .key = "k2"}, "k");
    EXPECT_TRUE(test_support::contains(co_await other.result(), "would wait for itself"));
  });
}

TEST(durable_object, turns_that_call_each_other_in_a_circle_are_refused_also_after_a_crash) {
  const stage on;
  auto crosses = [](std::string to) -> task<std::string> {
    co_await weir::sleep(1h);
    try {
      co_return co_await weir::call<std::string>("o/ends", to, {.key = to});
    } catch (const weir::error& e) {
      co_return e.code() == errc::would_deadlock ? "circle" : e.what();
    }
  };
  auto ends = [](std::string key) -> task<std::string> { co_return "ended " + key; };
  auto setup = [&](durable::engine& e) {
    e.add_object("o", {{"crosses", crosses}, {"ends", ends}});
  };
  auto start = [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("o/crosses", {.id = "a", .key = "a"}, "b");
    (void)co_await e.start<std::string>("o/crosses", {.id = "b", .key = "b"}, "a");
  };
  session(on, setup, [&](durable::engine& e) -> task<> {
    co_await start(e);
    co_await weir::sleep(30min);
  });
  session(on, setup, [&](durable::engine& e) -> task<> {
    auto a = co_await e.start<std::string>("o/crosses", {.id = "a", .key = "a"}, "b");
    auto b = co_await e.start<std::string>("o/crosses", {.id = "b", .key = "b"}, "a");
    EXPECT_EQ(co_await b.result(), "circle");
    EXPECT_EQ(co_await a.result(), "ended b");
  });
}

TEST(durable_object, a_value_of_another_type_blocks_the_turn_and_old_code_finishes_it) {
  const stage on;
  auto reads_text = []() -> task<std::string> {
    auto total = weir::stored<std::string>("total");
    const std::optional<std::string> now = co_await total.get();
    co_return now.value_or("");
  };
  auto reads_number = []() -> task<std::string> {
    auto total = weir::stored<int>("total");
    const std::optional<int> now = co_await total.get();
    co_return std::to_string(now.value_or(0));
  };
  auto with = [&](auto reads) {
    return [reads](durable::engine& e) {
      add_cart(e);
      e.add_object("cart", {{"read", reads}});
    };
  };
  session(on, with(reads_text), [](durable::engine& e) -> task<> {
    (void)co_await added(e, "k", 7);
    (void)co_await e.start<std::string>("cart/read", {.id = "r", .key = "k"});
    (void)co_await e.start<int>("cart/add", {.id = "behind", .key = "k"}, 1);
    co_await weir::sleep(1h);
    const auto info = e.get("r");
    EXPECT_EQ(info->state, run_state::blocked);
    EXPECT_TRUE(test_support::contains(info->message, "stored 'total'")) << info->message;
    EXPECT_EQ(e.get("behind")->state, run_state::suspended);
  });
  session(on, with(reads_number), [](durable::engine& e) -> task<> {
    auto read = co_await e.start<std::string>("cart/read", {.id = "r", .key = "k"});
    EXPECT_EQ(co_await read.result(), "7");
    auto behind = co_await e.start<int>("cart/add", {.id = "behind", .key = "k"}, 1);
    EXPECT_EQ(co_await behind.result(), 8);
  });
}

TEST(durable_object, a_turn_without_its_handler_keeps_its_key_until_it_is_cancelled) {
  const stage on;
  session(on, add_cart, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("cart/slow", {.id = "gone", .key = "k"}, "x");
    (void)co_await e.start<int>("cart/add", {.id = "next", .key = "k"}, 1);
    co_await weir::sleep(1min);
  });
  auto less = [](durable::engine& e) { e.add_object("cart", {{"add", add_to_cart}}); };
  session(on, less, [](durable::engine& e) -> task<> {
    co_await weir::sleep(2h);
    EXPECT_EQ(e.get("gone")->state, run_state::blocked);
    EXPECT_EQ(e.get("next")->state, run_state::suspended);
    EXPECT_TRUE(e.cancel("gone"));
    auto next = co_await e.start<int>("cart/add", {.id = "next", .key = "k"}, 1);
    EXPECT_EQ(co_await next.result(), 1);
  });
}

TEST(durable_object, has_versions_old_turns_go_on_with_theirs) {
  const stage on;
  auto one = []() -> task<int> {
    co_await weir::sleep(1h);
    co_return 1;
  };
  auto two = []() -> task<int> { co_return 2; };
  session(
      on, [&](durable::engine& e) { e.add_object("o", {{"v", one}}); },
      [](durable::engine& e) -> task<> {
        (void)co_await e.start<int>("o/v", {.id = "old", .key = "k"});
        co_await weir::sleep(1min);
      });
  auto both = [&](durable::engine& e) {
    e.add_object("o", {{"v", one}});
    e.add_object("o", {{"v", two}}, {.version = 2});
  };
  session(on, both, [](durable::engine& e) -> task<> {
    auto fresh = co_await e.start<int>("o/v", {.id = "new", .key = "k"});
    EXPECT_EQ(co_await fresh.result(), 2);
    auto old = co_await e.start<int>("o/v", {.id = "old", .key = "k"});
    EXPECT_EQ(co_await old.result(), 1);
    EXPECT_EQ(e.get("new")->version, 2);
  });
}

TEST(durable_object, a_send_of_a_turn_whose_id_another_handler_has_taken_fails_the_turn) {
  const stage on;
  auto turn = [](int) -> task<int> {
    weir::stored<int>("total").set(1);
    const int n = 1;
    (void)co_await weir::send("cart/add", n, {.id = "taken", .key = "x"});
    co_await weir::sleep(1h);
    co_return 1;
  };
  auto setup = [&](durable::engine& e) {
    add_cart(e);
    e.add("plain", gives_its_input);
    e.add_object("o", {{"turn", turn}, {"total", durable::shared(total_of_cart)}});
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("o/turn", {.key = "k"}, 1);
    co_await weir::sleep(1min);
    EXPECT_FALSE(e.get("taken").has_value());  // sends wait for the commit
    (void)co_await e.start<int>("plain", {.id = "taken"}, 1);
    const auto error = co_await test_support::attempt([&] { return run.result(); });
    EXPECT_EQ(test_support::code_of(error), errc::id_in_use) << test_support::what_of(error);
    auto total = co_await e.start<int>("o/total", {.key = "k"});
    EXPECT_EQ(co_await total.result(), 0);
  });
}

TEST(durable_object, a_turn_may_send_to_its_own_key) {
  const stage on;
  auto countdown = [](int n) -> task<int> {
    auto seen = weir::stored<std::vector<int>>("seen");
    auto all = co_await seen.get();
    std::vector<int> now = all.value_or(std::vector<int>{});
    now.push_back(n);
    seen.set(now);
    const int next = n - 1;
    if (n > 0) (void)co_await weir::send("o/down", next, {.key = weir::this_key()});
    co_return n;
  };
  auto seen = []() -> task<std::vector<int>> {
    auto all = co_await weir::stored<std::vector<int>>("seen").get();
    co_return all.value_or(std::vector<int>{});
  };
  auto setup = [&](durable::engine& e) {
    e.add_object("o", {{"down", countdown}, {"seen", durable::shared(seen)}});
  };
  session(on, setup, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("o/down", {.key = "k"}, 3);
    (void)co_await run.result();
    co_await weir::sleep(1s);
    auto all = co_await e.start<std::vector<int>>("o/seen", {.key = "k"}, weir::unit{});
    const std::vector<int> expected{3, 2, 1, 0};
    EXPECT_EQ(co_await all.result(), expected);
  });
}
