// SPDX-License-Identifier: MIT
// supervisor: children on real threads that crash, are restarted and are stopped.
#include <thread>

#include "support/sanitizers.hpp"

#include "supervisor_chaos.hpp"

using namespace supervisor_test;

namespace {

constexpr int supervisor_rounds = test_support::sanitized ? 20 : 100;
constexpr int calls = test_support::sanitized ? 400 : 4'000;

/// Runs `body(rig&, loops)` on real time; the first loop is the supervisor's, the others are those
/// of a runtime that outlives it.
template <class F>
void on_threads(const weir::supervisor_options& options, F body) {
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::runtime threads(s, {.name = "threads", .threads = 3});
      std::vector<weir::loop_ref> loops{weir::this_loop()};
      for (std::size_t i = 0; i < threads.size(); ++i) loops.push_back(threads.at(i));
      auto with_loops = [&](rig& r) -> task<> { co_await body(r, loops); };
      co_await with_rig(options, with_loops);
    });
  });
}

/// Waits until the child gives a value, and counts the calls that failed meanwhile.
task<int> wait_for_value(hand_ref whom) {
  for (int failed = 0;; ++failed) {
    answer_counts one;
    co_await call_once(whom, 1, one);
    EXPECT_EQ(one.wrong, 0);
    if (one.values == 1) co_return failed;
    co_await weir::yield();
  }
}

/// Starts the supervisor and waits until everybody answers.
task<> start_all(rig& r, const crew& hands) {
  r.running = r.home->spawn(drive(r.sup, r.result));
  for (const hand_ref& ref : hands) (void)co_await wait_for_value(ref);
}

/// Waits until everybody answers and the supervisor has done what there was to do.
task<> quiet(rig& r, const crew& hands) {
  for (;;) {
    for (const hand_ref& ref : hands) (void)co_await wait_for_value(ref);
    if (r.sup.count_children().active == crew_size) co_return;
    co_await weir::yield();
  }
}

task<> caller(const crew& hands, int from, int count, answer_counts& answers) {
  for (int n = from; n < from + count; ++n)
    co_await call_once(hands[static_cast<std::size_t>(n) % hands.size()], n, answers);
}

}  // namespace

TEST(supervisor_threads, children_are_started_and_stopped_on_their_threads) {
  for (int i = 0; i < supervisor_rounds; ++i) {
    on_threads(patient(), [](rig& r, const auto& loops) -> task<> {
      auto& book = r.keep<ledger>();
      const crew hands = add_crew(r.sup, book, loops);
      co_await start_all(r, hands);
      EXPECT_EQ(counts(r.sup), "4 4 0 4");
      co_await r.sup.stop();
      for (const auto& n : book.alive) EXPECT_EQ(n, 0);
      EXPECT_EQ(book.strangers, 0);
    });
  }
}

TEST(supervisor_threads, a_child_that_crashes_again_and_again_is_restarted_each_time) {
  on_threads(patient(), [](rig& r, const auto& loops) -> task<> {
    auto& book = r.keep<ledger>();
    const crew hands = add_crew(r.sup, book, loops);
    co_await start_all(r, hands);
    for (int i = 0; i < supervisor_rounds; ++i) {
      for (const hand_ref& ref : hands) ref.cast(&hand::crash);
      for (const hand_ref& ref : hands) (void)co_await wait_for_value(ref);
    }
    co_await quiet(r, hands);
    EXPECT_EQ(book.all_crashes(), supervisor_rounds * static_cast<int>(crew_size));
    check_book(r.sup, book, strategy::one_for_one);
  });
}
TEST(supervisor_threads, every_call_is_answered_once_under_every_strategy) {
  for (strategy how : all_strategies) {
    on_threads(patient(how), [&](rig& r, const auto& loops) -> task<> {
      auto& book = r.keep<ledger>();
      const crew hands = add_crew(r.sup, book, loops);
      co_await start_all(r, hands);
      answer_counts answers;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (std::size_t i = 0; i < loops.size(); ++i)
          s.spawn_on(loops[i], caller(hands, static_cast<int>(i), calls / 4, answers));
        co_await s.join();
      });
      EXPECT_EQ(answers.all(), static_cast<int>(loops.size()) * (calls / 4));
      EXPECT_EQ(answers.wrong, 0);
      EXPECT_EQ(answers.ended, 0);
      co_await quiet(r, hands);
      EXPECT_EQ(book.overlaps, 0);
      EXPECT_EQ(book.strangers, 0);
      EXPECT_EQ(book.all_crashes(), answers.own_errors);
    });
  }
}
TEST(supervisor_threads, calls_that_race_with_the_stop_are_answered_once) {
  for (int i = 0; i < supervisor_rounds; ++i) {
    const strategy how = all_strategies[static_cast<std::size_t>(i) % 4];
    on_threads(patient(how), [&](rig& r, const auto& loops) -> task<> {
      auto& book = r.keep<ledger>();
      const crew hands = add_crew(r.sup, book, loops);
      co_await start_all(r, hands);
      answer_counts answers;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        for (std::size_t n = 0; n < loops.size(); ++n)
          s.spawn_on(loops[n], caller(hands, static_cast<int>(n), 50, answers));
        for (int n = 0; n < i; ++n) co_await weir::yield();
        co_await r.sup.stop();
        for (const auto& n : book.alive) EXPECT_EQ(n, 0);
        co_await s.join();
      });
      EXPECT_EQ(answers.all(), static_cast<int>(loops.size()) * 50);
      EXPECT_EQ(answers.wrong, 0);
    });
  }
}
TEST(supervisor_threads, too_many_crashes_end_it_and_everybody_on_every_thread) {
  for (int i = 0; i < supervisor_rounds / 5; ++i) {
    on_threads(options_of(strategy::one_for_all, 2, 3600s),
               [](rig& r, const auto& loops) -> task<> {
                 auto& book = r.keep<ledger>();
                 const crew hands = add_crew(r.sup, book, loops);
                 co_await start_all(r, hands);
                 auto crash = [&](hand_ref ref) -> task<> {
                   while (ref.cast(&hand::crash) == sent::enqueued) co_await weir::yield();
                 };
                 co_await weir::with_scope([&](weir::scope& s) -> task<> {
                   for (std::size_t n = 0; n < crew_size; ++n)
                     s.spawn_on(loops[n], crash(hands[n]));
                   co_await s.join();
                 });
                 for (const hand_ref& ref : hands)
                   EXPECT_EQ(co_await ref.monitor(), ending::escalated);
                 co_await weir::settle(*r.running);
                 EXPECT_TRUE(holds<weir::restart_limit_error>(r.result.error));
                 for (const auto& n : book.alive) EXPECT_EQ(n, 0);
                 EXPECT_EQ(book.starts[0], 3);
               });
  }
}
TEST(supervisor_threads, a_nested_supervisor_restarts_its_children_on_their_threads) {
  on_threads(patient(), [](rig& r, const auto& loops) -> task<> {
    auto& book = r.keep<ledger>();
    weir::supervisor inner(options_of(strategy::one_for_all, 1, 3600s));
    const crew hands = add_crew(inner, book, loops);
    r.sup.add_supervisor({.name = "inner"}, std::move(inner));
    co_await start_all(r, hands);
    for (int i = 0; i < supervisor_rounds; ++i) {
      hands[static_cast<std::size_t>(i) % crew_size].cast(&hand::crash);
      for (const hand_ref& ref : hands) (void)co_await wait_for_value(ref);
    }
    EXPECT_EQ(book.overlaps, 0);
    EXPECT_EQ(book.strangers, 0);
    EXPECT_FALSE(r.result.ended);
    co_await r.sup.stop();
    for (const auto& n : book.alive) EXPECT_EQ(n, 0);
  });
}
TEST(supervisor_threads, plain_threads_may_cast_while_the_child_is_restarted_and_after_its_end) {
  std::atomic<bool> done{false};
  std::vector<std::thread> plain;
  on_threads(patient(), [&](rig& r, const auto& loops) -> task<> {
    auto& book = r.keep<ledger>();
    const crew hands = add_crew(r.sup, book, loops);
    co_await start_all(r, hands);
    for (const hand_ref& ref : hands) {
      plain.emplace_back([&done, ref] {
        while (!done) {
          (void)ref.cast(&hand::work, 1);
          std::this_thread::yield();
        }
      });
    }
    for (int i = 0; i < supervisor_rounds; ++i) {
      for (const hand_ref& ref : hands) ref.cast(&hand::crash);
      for (const hand_ref& ref : hands) (void)co_await wait_for_value(ref);
    }
    co_await r.sup.stop();
    for (const auto& n : book.alive) EXPECT_EQ(n, 0);
    EXPECT_EQ(book.overlaps, 0);
  });
  done = true;
  for (auto& t : plain) t.join();
}

TEST(supervisor_threads, administration_goes_on_while_children_crash_on_other_threads) {
  on_threads(patient(), [](rig& r, const auto& loops) -> task<> {
    auto& book = r.keep<ledger>();
    const crew hands = add_crew(r.sup, book, loops);
    co_await start_all(r, hands);
    for (int i = 0; i < supervisor_rounds; ++i) {
      const std::string name = "hand" + std::to_string(static_cast<std::size_t>(i) % crew_size);
      for (const hand_ref& ref : hands) ref.cast(&hand::crash);
      co_await r.sup.terminate_child(name);
      EXPECT_EQ(book.alive[static_cast<std::size_t>(i) % crew_size], 0);
      co_await r.sup.restart_child(name);
      EXPECT_EQ(book.alive[static_cast<std::size_t>(i) % crew_size] <= 1, true);
    }
    co_await quiet(r, hands);
    EXPECT_EQ(book.overlaps, 0);
    for (const auto& n : book.alive) EXPECT_EQ(n, 1);
  });
}
TEST(supervisor_threads, whatever_is_done_to_a_tree_nobody_overlaps_or_is_left_behind) {
  for (int i = 0; i < supervisor_rounds; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const auto inner = options_of(static_strategies[n / 4 % 3], 5, 3600s);
    on_threads(
        options_of(all_strategies[n % 4], 5, 3600s),
        [&](rig& r, const auto& loops) -> task<> { co_await one_run(r, inner, loops, false); });
  }
}
