// SPDX-License-Identifier: MIT
// supervisor: children on several simulated loops, in orders that an adversary chooses.
#include "supervisor_ledger.hpp"

using namespace supervisor_test;

namespace {

/// Runs `body(rig&, loops)`, the loops being the supervisor's and two others, in many orders.
template <class F>
void on_three_loops(const weir::supervisor_options& options, F body,
                    std::source_location site = std::source_location::current()) {
  for_each_order(
      [&](weir::sim::world& w) {
        const weir::loop_ref far = w.loop("far"), further = w.loop("further");
        auto with_loops = [&](rig& r) -> task<> {
          const std::vector<weir::loop_ref> loops{weir::this_loop(), far, further};
          co_await body(r, loops);
        };
        w.run([&]() -> task<> { co_await with_rig(options, with_loops); });
      },
      site);
}

/// So many calls to everybody, some of them made from the other loops.
task<> call_all(const crew& hands, const std::vector<weir::loop_ref>& loops, int calls,
                answer_counts& answers) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int n = 0; n < calls; ++n) {
      const auto i = static_cast<std::size_t>(n);
      auto call = call_once(hands[i % hands.size()], n / 2, answers);
      s.spawn_on(loops[i % loops.size()], std::move(call));
    }
    co_await s.join();
  });
}

}  // namespace
TEST(supervisor_loops, every_call_is_answered_once_and_the_restarts_fit_the_crashes) {
  for (strategy how : all_strategies) {
    on_three_loops(patient(how), [&](rig& r, const auto& loops) -> task<> {
      auto& book = r.keep<ledger>();
      const crew hands = add_crew(r.sup, book, loops);
      co_await r.start();
      answer_counts answers;
      co_await call_all(hands, loops, 16, answers);
      EXPECT_EQ(answers.all(), 16);
      EXPECT_EQ(answers.wrong, 0);
      EXPECT_EQ(answers.ended, 0);
      co_await settle();
      check_book(r.sup, book, how);
      EXPECT_EQ(book.all_crashes(), answers.own_errors);
      co_await r.sup.stop();
      for (const auto& n : book.alive) EXPECT_EQ(n, 0);
    });
  }
}
TEST(supervisor_loops, calls_that_race_with_the_stop_are_answered_once) {
  for (strategy how : {strategy::one_for_one, strategy::one_for_all, strategy::dynamic}) {
    on_three_loops(patient(how), [&](rig& r, const auto& loops) -> task<> {
      auto& book = r.keep<ledger>();
      const crew hands = add_crew(r.sup, book, loops);
      co_await r.start();
      answer_counts answers;
      auto calling = r.home->spawn(call_all(hands, loops, 12, answers));
      for (auto n = weir::random() % 8; n > 0; --n) co_await weir::yield();
      co_await r.sup.stop();
      for (const auto& n : book.alive) EXPECT_EQ(n, 0);
      co_await calling;
      EXPECT_EQ(answers.all(), 12);
      EXPECT_EQ(answers.wrong, 0);
      EXPECT_EQ(book.overlaps, 0);
      co_await settle();
      EXPECT_TRUE(r.result.clean);
    });
  }
}
TEST(supervisor_loops, calls_that_race_with_giving_up_are_answered_once) {
  on_three_loops(options_of(strategy::one_for_one, 1), [](rig& r, const auto& loops) -> task<> {
    auto& book = r.keep<ledger>();
    const crew hands = add_crew(r.sup, book, loops);
    co_await r.start();
    answer_counts answers;
    co_await call_all(hands, loops, 20, answers);
    EXPECT_EQ(answers.all(), 20);
    EXPECT_EQ(answers.wrong, 0);
    co_await settle();
    EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
    for (const auto& n : book.alive) EXPECT_EQ(n, 0);
  });
}
TEST(supervisor_loops, administration_that_races_with_crashes_leaves_everybody_as_asked) {
  for (strategy how : {strategy::one_for_one, strategy::rest_for_one}) {
    on_three_loops(patient(how), [&](rig& r, const auto& loops) -> task<> {
      auto& book = r.keep<ledger>();
      const crew hands = add_crew(r.sup, book, loops);
      co_await r.start();
      for (int round = 0; round < 3; ++round) {
        for (const hand_ref& ref : hands) ref.cast(&hand::crash);
        for (auto n = weir::random() % 4; n > 0; --n) co_await weir::yield();
        co_await r.sup.terminate_child("hand2");
        if (how == strategy::one_for_one) {  // under the other it may be revived meanwhile
          EXPECT_EQ(book.alive[2], 0);
        }
        (void)co_await code_after([&] { return r.sup.restart_child("hand2"); });
      }
      co_await settle();
      EXPECT_EQ(book.overlaps, 0);
      EXPECT_EQ(counts(r.sup), "4 4 0 4");
      for (const auto& n : book.alive) EXPECT_EQ(n, 1);
    });
  }
}
TEST(supervisor_loops, a_child_lives_and_dies_on_its_own_loop) {
  on_three_loops(patient(strategy::one_for_all), [](rig& r, const auto& loops) -> task<> {
    auto& book = r.keep<ledger>();
    const crew hands = add_crew(r.sup, book, loops);
    co_await r.start();
    hands[1].cast(&hand::crash);
    co_await settle();
    for (const auto& n : book.starts) EXPECT_EQ(n, 2);
    co_await r.sup.stop();
    EXPECT_EQ(book.strangers, 0);
  });
}
TEST(supervisor_loops, order_holds_across_loops) {
  on_three_loops(patient(strategy::rest_for_one), [](rig& r, const auto& loops) -> task<> {
    std::vector<worker_ref> refs;
    for (std::size_t i = 0; i < 5; ++i) {
      const std::string name(1, static_cast<char>('1' + i));
      auto o = kid(name);
      o.on = loops[(i + 1) % loops.size()];
      refs.push_back(r.add(o, name));
    }
    co_await r.start();
    EXPECT_EQ(r.log.take(), "+1 +2 +3 +4 +5");
    refs[2].cast(&worker::crash);
    co_await settle();
    EXPECT_EQ(r.log.take(), "-3 -5 -4 +3 +4 +5");
    co_await r.sup.stop();
    EXPECT_EQ(r.log.take(), "-5 -4 -3 -2 -1");
  });
}
TEST(supervisor_loops, limits_hold_across_loops) {
  on_three_loops(patient(), [](rig& r, const auto& loops) -> task<> {
    auto o = kid("polite");
    o.on = loops[1];
    o.shutdown = 1s;
    auto polite = r.add(o, "polite");
    o.name = "slow";
    auto slow = r.add(o, "slow");
    o.name = "stubborn";
    auto stubborn = r.add(o, "stubborn");
    co_await r.start();
    slow.cast(&worker::nap, 1h);
    stubborn.cast(&worker::stubborn, 5s);
    co_await settle();
    const auto start = weir::now();
    co_await r.sup.stop();
    EXPECT_EQ(ms_since(start), 4999);
    EXPECT_EQ(co_await polite.monitor(), ending::normal);
    EXPECT_EQ(co_await slow.monitor(), ending::cancelled);
    EXPECT_EQ(co_await stubborn.monitor(), ending::cancelled);
    EXPECT_EQ(r.log.text(), "+polite +slow +stubborn -slow -polite -stubborn");
  });
}

// A process that died takes the children of its loop with it.
TEST(supervisor_loops, children_of_a_loop_that_died_cannot_be_restarted_there) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    auto body = [&](rig& r) -> task<> {
      const crew hands = add_crew(r.sup, book, {w.loop("far")});
      r.add("a");
      co_await r.start();
      w.crash("far");
      co_await settle();
      const auto code = co_await code_after([&] { return hands[0].call(&hand::work, 1); });
      EXPECT_TRUE(code);
      EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
    };
    w.run([&]() -> task<> { co_await with_rig(options_of(strategy::one_for_one), body); });
  });
}

TEST(supervisor_loops, a_child_whose_loop_is_gone_cannot_start) {
  for_each_order([](weir::sim::world& w) {
    auto body = [&](rig& r) -> task<> {
      r.add("a");
      auto o = kid("b");
      o.on = w.loop("far");
      r.add(o, "b");
      w.crash("far");
      co_await r.start();
      EXPECT_EQ(code_of(r.result.error), errc::loop_gone);
      EXPECT_EQ(r.log.text(), "+a -a");
    };
    w.run([&]() -> task<> { co_await with_rig(patient(), body); });
  });
}
