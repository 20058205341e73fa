// SPDX-License-Identifier: MIT
// Journaled time: deadlines are wall time, they outlive processes and are not charged to replay.
#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

/// Hours since day0, as a handler sees them.
int hour() { return static_cast<int>((weir::wall_now() - day0) / 1h); }

/// A process that starts the run and dies after `d`.
template <class H>
void life_lasting(const stage& on, H handler, weir::duration d) {
  EXPECT_EQ(life([&] {
              session_of(on, handler, [&](durable::engine& e) -> task<> {
                (void)co_await e.start<std::string>("h", {.id = "r"}, 1);
                co_await weir::sleep(d);
                ::_exit(crashed);
              });
            }),
            crashed);
}

task<> push_after(weir::duration d, int value, std::vector<int>& order) {
  co_await weir::sleep(d);
  order.push_back(value);
}

}  // namespace

TEST(durable_sleep, ends_when_it_would_have_ended_without_the_crash) {
  auto handler = [](int) -> task<std::string> {
    co_await weir::sleep(24h);
    co_return std::to_string(hour());
  };
  const stage on;
  life_lasting(on, handler, 10h);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 20h), "24"); });
}

TEST(durable_sleep, that_is_overdue_ends_at_once) {
  auto handler = [](int) -> task<std::string> {
    co_await weir::sleep(24h);
    co_return std::to_string(hour());
  };
  const stage on;
  life_lasting(on, handler, 10h);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 100h), "100"); });
}

TEST(durable_sleep, takes_no_time_again_on_replay) {
  survives(
      [](int) -> task<std::string> {
        co_await weir::sleep(1h);
        co_await give("a", 0);
        co_await weir::sleep(2h);
        co_await give("b", 0);
        co_await weir::sleep_until(weir::now() + 3h);
        co_await give("c", 0);
        co_return "done";
      },
      "done");
}

TEST(durable_sleep, of_no_time_is_a_turn_for_others) {
  survives(
      [](int) -> task<std::string> {
        std::string order;
        auto says = [&](char c) -> task<> {
          order += c;
          co_await weir::sleep(0s);
          order += c;
          co_await weir::sleep(-1s);
          order += c;
        };
        co_await weir::all(says('a'), says('b'));
        co_await give("after", 0);
        co_return order;
      },
      "ababab");
}

TEST(durable_sleep, overdue_ones_end_in_the_order_of_their_deadlines) {
  auto handler = [](int) -> task<std::string> {
    std::vector<int> order;
    co_await weir::all(push_after(3h, 3, order), push_after(1h, 1, order),
                       push_after(2h, 2, order));
    co_return text(order);
  };
  const stage on;
  life_lasting(on, handler, 30min);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 100h), "1,2,3"); });
}

TEST(durable_sleep, overdue_ones_with_one_deadline_end_in_the_order_in_which_they_began) {
  // Equal down to the nanosecond: they are begun in one turn.
  auto handler = [](int) -> task<std::string> {
    std::vector<int> order;
    co_await weir::all(push_after(1h, 1, order), push_after(1h, 2, order),
                       push_after(1h, 3, order));
    co_return text(order);
  };
  const stage on;
  EXPECT_EQ(ending(on, handler), "1,2,3");
  const stage other;
  life_lasting(other, handler, 30min);
  whole_life([&] { EXPECT_EQ(ending(other, handler, 100h), "1,2,3"); });
}

TEST(durable_sleep, overdue_ones_of_several_runs_end_in_the_order_of_their_deadlines) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    co_await weir::sleep(std::chrono::hours(n));
    co_return "done";
  };
  EXPECT_EQ(life([&] {
              session_of(on, handler, [&](durable::engine& e) -> task<> {
                for (const int n : {3, 1, 2}) {
                  const std::string id = "r" + std::to_string(n);
                  (void)co_await e.start<std::string>("h", {.id = id}, n);
                }
                co_await weir::sleep(30min);
                ::_exit(crashed);
              });
            }),
            crashed);
  whole_life([&] {
    auto use = [&](durable::engine& e) -> task<> {
      lines order;
      auto events = e.events();
      while (order.size() < 3) {
        const auto event = co_await events.next();
        if (event->state == durable::run_state::completed) order.push_back(event->id);
      }
      EXPECT_EQ(order, (lines{"r1", "r2", "r3"}));
    };
    session_of(on, handler, use, 100h);
  });
}

TEST(durable_timeout, takes_the_same_side_again) {
  survives(
      [](int) -> task<std::string> {
        std::string sides;
        for (const auto d : {1h, 3h}) {
          try {
            const int v = co_await weir::with_timeout(2h, nap(d, 7));
            sides += "value " + std::to_string(v) + " ";
          } catch (const weir::timeout_error&) {
            sides += "late ";
          }
          co_await give("after " + std::to_string(d / 1h), 0);
        }
        co_return sides;
      },
      "value 7 late ");
}

TEST(durable_timeout, is_not_charged_to_replay) {
  // The recorded results are delivered before the deadline that passed while nobody ran.
  survives(
      [](int) -> task<std::string> {
        auto work = []() -> task<int> {
          const int a = co_await give("a", 1);
          co_await weir::sleep(10min);
          const int b = co_await give("b", 2);
          co_return a + b;
        };
        const int sum = co_await weir::with_timeout(1h, work());
        co_await give("c", 0);
        co_return std::to_string(sum);
      },
      "3", at_once);
  auto handler = [](int) -> task<std::string> {
    const int v = co_await weir::with_timeout(1h, give_after(59min, "a", 1));
    co_await give("b", 0);
    co_return std::to_string(v);
  };
  const stage on;
  life_that_dies_in("b", [&] { (void)ending(on, handler); });
  whole_life([&] { EXPECT_EQ(ending(on, handler, 1000h), "1"); });
}

TEST(durable_timeout, counts_the_time_in_which_nobody_ran) {
  auto handler = [](int) -> task<std::string> {
    auto answer = weir::awakeable<int>("never answered");
    try {
      (void)co_await weir::with_timeout(24h, answer.wait());
    } catch (const weir::timeout_error&) {
      co_return std::to_string(hour());
    }
    co_return "value";
  };
  const stage on;
  life_lasting(on, handler, 1h);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 20h), "24"); });
  const stage other;
  life_lasting(other, handler, 1h);
  whole_life([&] { EXPECT_EQ(ending(other, handler, 30h), "30"); });
}

TEST(durable_timeout, that_fires_lets_journaled_cleanup_end_first) {
  survives(
      [](int) -> task<std::string> {
        auto work = []() -> task<int> {
          co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
            s.defer([]() -> task<> { (void)co_await give("undo", 0); });
            co_return co_await nap(5h, 1);
          });
        };
        std::string side = "value";
        try {
          (void)co_await weir::with_timeout(1h, work());
        } catch (const weir::timeout_error&) {
          side = "late";
        }
        co_await give("after", 0);
        co_return side;
      },
      "late");
}

TEST(durable_timeout, of_no_time_starts_nothing) {
  survives(
      [](int) -> task<std::string> {
        std::string side = "value";
        try {
          (void)co_await weir::with_timeout(0s, give("never", 1));
        } catch (const weir::timeout_error&) {
          side = "late";
        }
        co_await give("after", 0);
        co_return side;
      },
      "late");
}

TEST(durable_every, goes_on_where_it_was) {
  survives(
      [](int) -> task<std::string> {
        int runs = 0;
        auto tick = [&]() -> task<> {
          (void)co_await give("tick " + std::to_string(++runs), 0);
          if (runs == 4) throw weir::terminal_error("enough");
        };
        try {
          co_await weir::every(1h, tick);
        } catch (const weir::terminal_error& e) {
          co_return said(e, "enough") + " " + std::to_string(runs);
        }
        co_return "ended";
      },
      "enough 4");
}

TEST(durable_every, has_its_interval_between_the_runs) {
  auto handler = [](int) -> task<std::string> {
    std::vector<int> at;
    auto tick = [&]() -> task<> {
      at.push_back(hour());
      co_await weir::sleep(2h);
      if (at.size() == 3) throw weir::terminal_error("enough");
    };
    try {
      co_await weir::every(1h, tick);
    } catch (const weir::terminal_error&) {
    }
    co_return text(at);
  };
  const stage on;
  life_lasting(on, handler, 5h);
  whole_life([&] { EXPECT_EQ(ending(on, handler, 5h), "1,4,7"); });
}
