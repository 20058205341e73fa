// SPDX-License-Identifier: MIT
// Awakeables: external promises, resolved once from outside of the run.
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

/// Hands out the id of an awakeable in a step and waits for the answer.
task<std::string> asks_for_approval(int) {
  auto answer = weir::awakeable<std::string>("approval");
  co_await weir::step("publish", [&] { note("id " + std::string(answer.id())); });
  const std::string v = co_await answer.wait();
  co_await give("after", 0);
  co_return v;
}

/// Hands out the id and asks for the answer only an hour later.
task<std::string> asks_late(int n) {
  auto answer = weir::awakeable<int>("n");
  co_await weir::step("publish", [&] { note("id " + std::string(answer.id())); });
  co_await weir::sleep(1h);
  co_return co_await value_or(
      [](weir::awakeable<int> a) -> task<int> { co_return co_await a.wait(); }(answer),
      "not today " + std::to_string(n));
}

struct verdict {
  bool yes = false;
  std::string why;
};
WEIR_DESCRIBE(verdict, yes, why);

task<std::error_code> code_of_resolve(durable::engine& e, std::string id) {
  const auto error = co_await test_support::attempt([&] { return e.resolve(id, 1); });
  co_return test_support::code_of(error);
}

}  // namespace

TEST(durable_awakeable, gives_the_answer_and_tells_who_was_first) {
  const stage on;
  session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    EXPECT_TRUE(co_await e.resolve(id, std::string("yes")));
    EXPECT_FALSE(co_await e.resolve(id, std::string("no")));
    EXPECT_FALSE(co_await e.reject(id, "no"));
    EXPECT_EQ(co_await run.result(), "yes");
  });
}

TEST(durable_awakeable, has_the_same_id_in_every_life) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    co_await give("before", 0);
    auto answer = weir::awakeable<std::string>("approval");
    note("id " + std::string(answer.id()));
    co_await give("publish", 0);
    co_return co_await answer.wait();
  };
  life_that_dies_in("publish", [&] { (void)ending(on, handler); });
  whole_life([&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      (void)co_await last_noted("id ", 2);
      const lines ids = noted("id ");
      EXPECT_EQ(ids[0], ids[1]);
      EXPECT_TRUE(co_await e.resolve(ids[0], std::string("later")));
      EXPECT_EQ(co_await run.result(), "later");
    });
  });
}

TEST(durable_awakeable, an_acknowledged_answer_survives_the_death_of_the_process) {
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                const std::string id = co_await last_noted("id ");
                EXPECT_TRUE(co_await e.resolve(id, std::string("kept")));
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, asks_for_approval), "kept"); });
}

TEST(durable_awakeable, the_answer_is_the_same_after_crashes_behind_it) {
  const stage on;
  life_that_dies_in("after", [&] {
    session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      const std::string id = co_await last_noted("id ");
      EXPECT_TRUE(co_await e.resolve(id, std::string("once")));
      (void)co_await run.result();
    });
  });
  whole_life([&] {
    session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      const std::string id = noted("id ").front();
      EXPECT_FALSE(co_await e.resolve(id, std::string("again")));
      EXPECT_EQ(co_await run.result(), "once");
    });
  });
}

TEST(durable_awakeable, an_early_answer_is_kept) {
  const stage on;
  session_of(on, asks_late, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    EXPECT_TRUE(co_await e.resolve(id, 41));
    EXPECT_EQ(co_await run.result(), "41");
  });
}

TEST(durable_awakeable, an_early_answer_is_kept_over_lives) {
  const stage on;
  EXPECT_EQ(life([&] {
              session_of(on, asks_late, [](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                const std::string id = co_await last_noted("id ");
                EXPECT_TRUE(co_await e.resolve(id, 41));
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] { EXPECT_EQ(ending(on, asks_late), "41"); });
}

TEST(durable_awakeable, a_rejection_is_a_terminal_error) {
  const stage on;
  session_of(on, asks_late, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    EXPECT_TRUE(co_await e.reject(id, "not today 1"));
    EXPECT_FALSE(co_await e.resolve(id, 1));
    EXPECT_EQ(co_await run.result(), "!not today 1");
  });
}

TEST(durable_awakeable, of_an_ended_run_takes_no_answer) {
  const stage on;
  session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    run.cancel();
    EXPECT_EQ(co_await ending_of(run), "cancelled");
    EXPECT_FALSE(co_await e.resolve(id, std::string("late")));
    EXPECT_FALSE(co_await e.reject(id, "late"));
  });
  session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
    const std::string id = noted("id ").front();
    EXPECT_FALSE(co_await e.resolve(id, std::string("very late")));
  });
}

TEST(durable_awakeable, ids_that_were_not_given_out_are_refused) {
  const stage on;
  session_of(on, asks_for_approval, [](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    for (std::size_t at = 0; at + 1 < id.size(); ++at) {
      std::string forged = id;
      forged[at] = forged[at] == 'A' ? 'B' : 'A';
      EXPECT_EQ(co_await code_of_resolve(e, forged), errc::unknown_awakeable) << forged;
    }
    for (const char* silly : {"", "x", "../../etc/passwd", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}) {
      EXPECT_EQ(co_await code_of_resolve(e, silly), errc::unknown_awakeable) << silly;
    }
    const auto longer = id + "A";
    const auto shorter = id.substr(0, id.size() - 2);
    EXPECT_EQ(co_await code_of_resolve(e, longer), errc::unknown_awakeable);
    EXPECT_EQ(co_await code_of_resolve(e, shorter), errc::unknown_awakeable);
    const auto error = co_await test_support::attempt([&] { return e.reject(shorter, "no"); });
    EXPECT_EQ(test_support::code_of(error), errc::unknown_awakeable);
    EXPECT_EQ(e.get("r")->state, durable::run_state::running);
  });
}

TEST(durable_awakeable, ids_of_another_journal_are_refused) {
  // In a simulation the secret of a journal is drawn, so the other one needs another seed.
  std::string foreign;
  {
    const stage other;
    auto asks_there = [&](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
      foreign = co_await last_noted("id ");
    };
    sim::run({.seed = 2, .start_time = day0},
             with_open_engine(options_for(other), as_h(asks_for_approval), asks_there));
  }
  const stage on;
  session_of(on, asks_for_approval, [&](durable::engine& e) -> task<> {
    (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    EXPECT_NE(id, foreign);
    EXPECT_EQ(co_await code_of_resolve(e, foreign), errc::unknown_awakeable);
    EXPECT_TRUE(co_await e.resolve(id, std::string("own")));
  });
}

TEST(durable_awakeable, two_of_one_name_have_ids_and_answers_of_their_own) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto a = weir::awakeable<int>("same");
    auto b = weir::awakeable<int>("same");
    co_await weir::step("publish", [&] {
      note("a " + std::string(a.id()));
      note("b " + std::string(b.id()));
    });
    auto [x, y] = co_await weir::all(a.wait(), b.wait());
    co_return row(x, y);
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string b = co_await last_noted("b ");
    const std::string a = noted("a ").front();
    EXPECT_NE(a, b);
    EXPECT_TRUE(co_await e.resolve(b, 2));
    EXPECT_TRUE(co_await e.resolve(a, 1));
    EXPECT_EQ(co_await run.result(), "1,2");
  });
}

TEST(durable_awakeable, is_waited_for_by_several_fibers) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto a = weir::awakeable<int>("a");
    co_await weir::step("publish", [&] { note("id " + std::string(a.id())); });
    auto waits = [&](int plus) -> task<int> { co_return co_await a.wait() + plus; };
    auto [x, y] = co_await weir::all(waits(1), waits(2));
    co_return row(x, y, co_await a.wait());
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    EXPECT_TRUE(co_await e.resolve(co_await last_noted("id "), 10));
    EXPECT_EQ(co_await run.result(), "11,12,10");
  });
}

TEST(durable_awakeable, waited_for_too_long_may_be_waited_for_again) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto a = weir::awakeable<int>("a");
    co_await weir::step("publish", [&] { note("id " + std::string(a.id())); });
    std::string seen;
    try {
      (void)co_await weir::with_timeout(24h, a.wait());
    } catch (const weir::timeout_error&) {
      seen = "late ";
    }
    co_await give("reminded", 0);
    co_return seen + std::to_string(co_await a.wait());
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const std::string id = co_await last_noted("id ");
    co_await weir::sleep(25h);
    EXPECT_EQ(times("reminded"), 1);
    EXPECT_TRUE(co_await e.resolve(id, 5));
    EXPECT_EQ(co_await run.result(), "late 5");
  });
}

TEST(durable_awakeable, answers_arrive_in_the_order_of_the_journal_again) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    std::string order;
    std::vector<weir::awakeable<int>> all;
    for (int i = 0; i < 4; ++i) all.emplace_back("a" + std::to_string(i));
    co_await weir::step("publish", [&] {
      for (const auto& a : all) note("id " + std::string(a.id()));
    });
    auto waits = [&](int i) -> task<> {
      order += std::to_string(co_await all[static_cast<std::size_t>(i)].wait());
    };
    co_await weir::all(waits(0), waits(1), waits(2), waits(3));
    co_await give("after " + order, 0);
    co_return order;
  };
  life_that_dies_in("after 2031", [&] {
    session_of(on, handler, [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      (void)co_await last_noted("id ", 4);
      const lines ids = noted("id ");
      for (const std::size_t i : {2u, 0u, 3u, 1u}) {
        EXPECT_TRUE(co_await e.resolve(ids[i], static_cast<int>(i)));
      }
      (void)co_await run.result();
    });
  });
  whole_life([&] { EXPECT_EQ(ending(on, handler), "2031"); });
}

TEST(durable_awakeable, carries_described_types) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto a = weir::awakeable<verdict>("a");
    co_await weir::step("publish", [&] { note("id " + std::string(a.id())); });
    const verdict v = co_await a.wait();
    co_return (v.yes ? "yes: " : "no: ") + v.why;
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    const verdict v{true, "because"};
    EXPECT_TRUE(co_await e.resolve(co_await last_noted("id "), v));
    EXPECT_EQ(co_await run.result(), "yes: because");
  });
}

FIBER_TEST(durable_awakeable, outside_of_a_run_there_are_none) {
  const auto error = test_support::thrown_by([] { return weir::awakeable<int>("a"); });
  EXPECT_EQ(test_support::code_of(error), errc::not_durable);
  co_return;
}
