// SPDX-License-Identifier: MIT
// Agents with real threads: messages from plain threads and other loops, and every end that may
// race with them.
#include <array>
#include <atomic>
#include <thread>

#include "agent_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;

namespace {

constexpr int messages = test_support::sanitized ? 1'000 : 10'000;
constexpr int agent_rounds = test_support::sanitized ? 20 : 100;
constexpr int casts = 10;

/// Runs `body(scope&, one, two)`; the loops outlive the scope.
template <class F>
void beside_two_threads(F body) {
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& outer) -> task<> {
      const weir::loop_thread one(outer, {.name = "one"});
      const weir::loop_thread two(outer, {.name = "two"});
      auto inside = [&](weir::scope& s) -> task<> { co_await body(s, one.ref(), two.ref()); };
      co_await weir::with_scope(inside);
    });
  });
}

/// Checks that the numbers of each sender rise by one.
class sorter {
 public:
  void put(int who, int n) {
    int& last = last_[static_cast<std::size_t>(who)];
    if (n != ++last) ++disorder_;
    ++total_;
  }
  int total() const { return total_; }
  int disorder() const { return disorder_; }

 private:
  std::array<int, 16> last_{};
  int total_ = 0;
  int disorder_ = 0;
};

task<> send_in_order(agent_ref<sorter> to, int who, int count) {
  for (int i = 1; i <= count; ++i) {
    if (i % 50 == 0) {
      co_await to.call(&sorter::put, who, i);
    } else if (i % 7 == 0) {
      co_await to.send(&sorter::put, who, i);
    } else {
      to.cast(&sorter::put, who, i);
    }
  }
}

}  // namespace

TEST(agent_threads, casts_of_plain_threads_arrive_once_and_in_order_per_thread) {
  std::vector<std::thread> threads;
  beside_two_threads([&](weir::scope& s, weir::loop_ref one, weir::loop_ref) -> task<> {
    for (int round = 0; round < 2; ++round) {
      auto a = round == 0 ? weir::spawn_agent<sorter>(s, {.name = "here"})
                          : weir::spawn_agent<sorter>(s, options_on(one, "there"));
      for (int who = 0; who < 4; ++who) {
        threads.emplace_back([a, who]() mutable {
          for (int i = 1; i <= messages; ++i)
            EXPECT_EQ(a.cast(&sorter::put, who, i), sent::enqueued);
        });
      }
      for (;;) {
        const int total = co_await a.call(&sorter::total);
        if (total == 4 * messages) break;
        co_await weir::sleep(1ms);
      }
      EXPECT_EQ(co_await a.call(&sorter::disorder), 0);
    }
  });
  for (auto& t : threads) t.join();
}

TEST(agent_threads, what_a_thread_sent_before_it_ended_comes_before_what_is_sent_here) {
  beside_two_threads([](weir::scope& s, weir::loop_ref, weir::loop_ref two) -> task<> {
    for (int round = 0; round < agent_rounds; ++round) {
      auto c = weir::spawn_agent<counter>(s, {.name = "c"});
      if (round % 2 == 0) co_await weir::yield();
      auto sends = [&]() -> task<> {
        for (int i = 0; i < casts; ++i) c.cast(&counter::inc, 1);
        co_return;
      };
      std::thread([c] {
        for (int i = 0; i < casts; ++i) c.cast(&counter::inc, 1);
      }).join();
      if (round % 3 == 0) {
        EXPECT_EQ(co_await c.call(&counter::get), casts);
      }
      co_await weir::on(two, sends);
      if (round % 4 == 0) {
        EXPECT_EQ(co_await c.call(&counter::get), 2 * casts);
      }
      co_await c.stop();
      EXPECT_EQ(c.info().dropped, 0U);
    }
  });
}

TEST(agent_threads, messages_of_other_loops_arrive_once_and_in_order_per_sender) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    auto a = weir::spawn_agent<sorter>(s, options_on(one, "a"));
    std::vector<weir::child<void>> all;
    for (int who = 0; who < 6; ++who) {
      const weir::loop_ref from = who % 3 == 0 ? one : who % 3 == 1 ? two : weir::this_loop();
      all.push_back(s.spawn_on(from, send_in_order(a, who, messages / 4)));
    }
    for (auto& one_of_them : all) co_await one_of_them;
    co_await a.stop();
    EXPECT_EQ(a.info().handled, 6U * (messages / 4));
    EXPECT_EQ(a.info().queued, 0U);
  });
}

TEST(agent_threads, a_bounded_mailbox_is_waited_for_from_everywhere_and_loses_nothing) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    weir::agent_options options = options_on(one, "a");
    options.capacity = 2;
    options.overflow = weir::overflow::wait;
    auto a = weir::spawn_agent<sorter>(s, options);
    auto sends = [&](int who) -> task<> {
      auto ref = a;
      for (int i = 1; i <= messages / 10; ++i) {
        if (i % 3 == 0) {
          co_await ref.call(&sorter::put, who, i);
        } else {
          co_await ref.send(&sorter::put, who, i);
        }
      }
    };
    std::vector<weir::child<void>> all;
    for (int who = 0; who < 6; ++who) {
      const weir::loop_ref from = who % 3 == 0 ? one : who % 3 == 1 ? two : weir::this_loop();
      all.push_back(s.spawn_on(from, sends(who)));
    }
    for (auto& one_of_them : all) co_await one_of_them;
    EXPECT_EQ(co_await a.call(&sorter::total), 6 * (messages / 10));
    EXPECT_EQ(co_await a.call(&sorter::disorder), 0);
  });
}
TEST(agent_threads, calls_that_race_with_a_stop_are_each_answered_once) {
  for (int round = 0; round < agent_rounds; ++round) {
    std::atomic<int> values{0};
    std::atomic<int> refused{0};
    constexpr int calls = 200;
    beside_two_threads([&](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
      auto c = round % 2 == 0 ? weir::spawn_agent<counter>(s, {.name = "c"}, 1)
                              : weir::spawn_agent<counter>(s, options_on(one, "c"), 1);
      auto hammer = [&]() -> task<> {
        auto ref = c;
        for (int i = 0; i < calls; ++i) {
          const std::error_code code = co_await code_of_call(ref, &counter::get);
          ++(code ? refused : values);
          EXPECT_TRUE(!code || code == errc::agent_stopped) << code.message();
        }
      };
      auto a = s.spawn_on(one, hammer);
      auto b = s.spawn_on(two, hammer);
      co_await wait_until([&] { return values >= round; });
      co_await c.stop();
      co_await a;
      co_await b;
    });
    EXPECT_EQ(values + refused, 2 * calls);
  }
}

TEST(agent_threads, calls_whose_callers_leave_at_any_moment_do_not_disturb_the_others) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    auto c = weir::spawn_agent<counter>(s, options_on(one, "c"));
    std::atomic<int> values{0};
    auto calls = [&]() -> task<> {
      auto ref = c;
      for (;;) {
        (void)co_await ref.call(&counter::fetch_inc);
        ++values;
      }
    };
    for (int round = 0; round < 3 * agent_rounds; ++round) {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 4; ++i)
        all.push_back(s.spawn_on(i % 2 == 0 ? two : weir::this_loop(), calls));
      for (auto i = weir::random() % 20; i > 0; --i) co_await weir::yield();
      for (auto& one_of_them : all) one_of_them.cancel();
      for (auto& one_of_them : all) co_await weir::settle(one_of_them);
    }
    const int count = co_await c.call(&counter::get);
    EXPECT_GE(count, values);  // some replies were late
    co_await c.stop();
    EXPECT_EQ(c.info().handled, static_cast<std::size_t>(count) + 1);
  });
}

TEST(agent_threads, sends_whose_senders_leave_at_any_moment_take_no_room_for_ever) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    weir::agent_options options = options_on(one, "c");
    options.capacity = 1;
    options.overflow = weir::overflow::wait;
    auto c = weir::spawn_agent<counter>(s, options);
    std::atomic<int> accepted{0};
    auto sends = [&]() -> task<> {
      auto ref = c;
      for (;;) {
        co_await ref.send(&counter::inc, 1);
        ++accepted;
      }
    };
    for (int round = 0; round < 2 * agent_rounds; ++round) {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 4; ++i)
        all.push_back(s.spawn_on(i % 2 == 0 ? two : weir::this_loop(), sends));
      for (auto i = weir::random() % 20; i > 0; --i) co_await weir::yield();
      for (auto& one_of_them : all) one_of_them.cancel();
      for (auto& one_of_them : all) co_await weir::settle(one_of_them);
    }
    EXPECT_EQ(co_await c.call(&counter::get), accepted);
  });
}

// ------------------------------------------------------------------ ends

TEST(agent_threads, a_crash_elsewhere_tells_the_owner_the_callers_and_the_monitors) {
  for (int round = 0; round < agent_rounds; ++round) {
    std::atomic<int> told{0};
    beside_two_threads([&](weir::scope& outer, weir::loop_ref one, weir::loop_ref two) -> task<> {
      std::optional<agent_ref<counter>> c;
      auto body = [&](weir::scope& s) -> task<> {
        c = weir::spawn_agent<counter>(s, options_on(one, "c"));
        auto calls = [&told, ref = *c]() -> task<> {
          auto mine = ref;
          for (;;) {
            const std::error_code code = co_await code_of_call(mine, &counter::get);
            if (!code) continue;
            EXPECT_EQ(code, errc::agent_crashed) << code.message();
            ++told;
            co_return;
          }
        };
        auto watches = [&told, ref = *c]() -> task<> {
          auto mine = ref;
          EXPECT_EQ(co_await mine.monitor(), ending::crashed);
          co_await mine.join();
          ++told;
        };
        outer.spawn_on(two, calls);
        outer.spawn_on(one, calls);
        outer.spawn_on(two, watches);
        outer.spawn(watches);
        for (int i = 0; i < round % 10; ++i) co_await weir::yield();
        c->cast(&counter::fail, 1);
        co_await weir::sleep(1h);
      };
      EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
      co_await outer.join();
    });
    EXPECT_EQ(told, 4);
  }
}

TEST(agent_threads, calls_to_an_agent_whose_loop_ends_are_each_answered_once) {
  for (int round = 0; round < agent_rounds; ++round) {
    std::atomic<int> answers{0};
    std::atomic<int> values{0};
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& callers) -> task<> {
        const weir::loop_thread beside(callers, {.name = "beside"});
        std::optional<agent_ref<counter>> c;
        auto owner = [&](weir::scope& s) -> task<> {
          auto with_loop = [&](weir::loop_thread& t) -> task<> {
            c = weir::spawn_agent<counter>(s, options_on(t, "c"));
            auto calls = [&answers, &values, ref = *c]() -> task<> {
              auto mine = ref;
              for (int i = 0; i < 50; ++i) {
                const std::error_code code = co_await code_of_call(mine, &counter::get);
                ++answers;
                if (!code) ++values;
                EXPECT_TRUE(!code || code == errc::loop_gone || code == errc::agent_stopped)
                    << code.message();
              }
            };
            callers.spawn(calls);
            callers.spawn_on(beside, calls);
            co_await wait_until([&] { return values >= round % 40; });
          };
          co_await weir::with_loop_thread(with_loop);
        };
        const std::exception_ptr error = co_await error_of_scope(owner);
        EXPECT_TRUE(error == nullptr || code_of(error) == errc::loop_gone) << what_of(error);
        co_await callers.join();
        co_await c->join();
        EXPECT_EQ(c->cast(&counter::inc, 1), sent::stopped);
      });
    });
    EXPECT_EQ(answers, 100);
  }
}

TEST(agent_threads, casts_of_a_plain_thread_race_with_the_end_of_the_loop) {
  for (int round = 0; round < agent_rounds; ++round) {
    std::thread plain;
    std::atomic<int> enqueued{0};
    std::atomic<bool> done{false};
    std::optional<agent_ref<counter>> kept;
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto c = weir::spawn_agent<counter>(s, {.name = "c"});
        kept = c;
        plain = std::thread([&, c]() mutable {
          while (c.cast(&counter::inc, 1) == sent::enqueued) ++enqueued;
          done = true;
        });
        co_await wait_until([&] { return enqueued >= round; });
      });
    });
    plain.join();
    EXPECT_TRUE(done);
    // The last one was refused; what was on its way when the agent ended is counted as well.
    EXPECT_EQ(kept->info().handled + kept->info().dropped, static_cast<std::size_t>(enqueued) + 1);
    EXPECT_EQ(kept->cast(&counter::inc, 1), sent::stopped);
    EXPECT_EQ(kept->info().state, agent_state::ended);
  }
}
TEST(agent_threads, an_expired_call_is_skipped_although_its_caller_had_no_time_to_withdraw_it) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref) -> task<> {
    std::atomic<bool> hold{true};
    class stubborn {
     public:
      void hold_while(std::atomic<bool>* flag) {
        while (*flag) std::this_thread::yield();
      }
      void count() { ++count_; }
      int counted() const { return count_; }

     private:
      int count_ = 0;
    };
    auto a = weir::spawn_agent<stubborn>(s, options_on(one, "a"));
    a.cast(&stubborn::hold_while, &hold);
    const weir::time_point limit = weir::now() + 2ms;
    bool over = false;
    // This loop lets go of the agent only after the limit, and does not look at its timers before
    // the agent has gone past the expired call.
    auto blocks = s.spawn([&]() -> task<> {
      co_await weir::yield();
      while (std::chrono::steady_clock::now() <= limit) std::this_thread::yield();
      hold = false;
      while (!over && a.info().skipped == 0) std::this_thread::yield();
    });
    const auto error = co_await error_of(weir::with_deadline(limit, a.call(&stubborn::count)));
    over = true;
    EXPECT_TRUE(holds<weir::timeout_error>(error)) << what_of(error);
    co_await blocks;
    EXPECT_EQ(co_await a.call(&stubborn::counted), 0);
    co_await a.stop();
  });
}

// ------------------------------------------------------------------ names, pools, timers

TEST(agent_threads, names_are_added_and_found_on_many_threads) {
  constexpr int agents = 8;
  std::atomic<int> found{0};
  std::atomic<int> taken{0};
  beside_two_threads([&](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    std::atomic<bool> ready{false};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {
        while (!ready) {
          for (int n = 0; n < agents; ++n) {
            auto ref = weir::registry::find<counter>("n" + std::to_string(n));
            if (ref && ref->cast(&counter::inc, 1) == sent::enqueued) ++found;
          }
        }
      });
    }
    auto lives = [&](int n) -> task<> {
      const std::string name = "n" + std::to_string(n % agents);
      for (int i = 0; i < agent_rounds; ++i) {
        co_await weir::with_scope([&](weir::scope& own) -> task<> {
          weir::agent_options options;
          options.name = name;
          auto c = weir::spawn_agent<counter>(own, options, n);
          const auto code = code_thrown_by([&] { return (weir::registry::add(c), 0); });
          if (code) {
            EXPECT_EQ(code, errc::name_taken);
            ++taken;
          }
          co_await weir::yield();
          co_await c.stop();
        });
      }
    };
    std::vector<weir::child<void>> all;
    for (int n = 0; n < 2 * agents; ++n)
      all.push_back(s.spawn_on(n % 2 == 0 ? one : two, lives(n)));
    for (auto& one_of_them : all) co_await one_of_them;
    ready = true;
    for (auto& t : readers) t.join();
    for (int n = 0; n < agents; ++n)
      EXPECT_FALSE(weir::registry::find<counter>("n" + std::to_string(n)).has_value());
  });
}

TEST(agent_threads, a_pool_is_used_from_everywhere) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    weir::agent_pool<counter> p(s, 3, options_on(one, "p"), 1);
    std::atomic<int> sum{0};
    auto calls = [&]() -> task<> {
      for (int i = 0; i < messages / 20; ++i) {
        sum += co_await p.call(&counter::get);
        p.cast(&counter::inc, 0);
      }
    };
    std::vector<weir::child<void>> all;
    for (int i = 0; i < 6; ++i) {
      const weir::loop_ref from = i % 3 == 0 ? one : i % 3 == 1 ? two : weir::this_loop();
      all.push_back(s.spawn_on(from, calls));
    }
    for (auto& one_of_them : all) co_await one_of_them;
    EXPECT_EQ(sum, 6 * (messages / 20));
  });
}

TEST(agent_threads, timers_are_armed_and_cancelled_on_other_loops_and_plain_threads) {
  beside_two_threads([](weir::scope& s, weir::loop_ref one, weir::loop_ref two) -> task<> {
    auto c = weir::spawn_agent<counter>(s, options_on(one, "c"));
    auto arms = [&]() -> task<> {
      auto ref = c;
      for (int i = 0; i < agent_rounds; ++i) {
        ref.cast_after(0ms, &counter::inc, 1);
        weir::timer_handle never = ref.cast_after(1h, &counter::inc, 1000);
        weir::timer_handle not_either = ref.cast_every(1h, &counter::inc, 1000);
        if (i % 2 == 0) co_await weir::yield();
        never.cancel();
        if (i % 3 != 0) not_either.cancel();  // the others end with the agent
      }
    };
    auto there = s.spawn_on(two, arms);
    auto here = s.spawn(arms);
    std::thread plain([ref = c]() mutable {
      for (int i = 0; i < agent_rounds; ++i) {
        ref.cast_after(0ms, &counter::inc, 1);
        ref.cast_after(1h, &counter::inc, 1000).cancel();
      }
    });
    co_await there;
    co_await here;
    for (;;) {
      const int n = co_await c.call(&counter::get);
      EXPECT_LT(n, 1000);
      if (n == 3 * agent_rounds) break;
      co_await weir::sleep(1ms);
    }
    plain.join();
    co_await c.stop();
  });
}

// `weir::run(ref.call(...))` on a thread without a loop: its value, its error, and a limit.
TEST(agent_threads, plain_threads_call_agents) {
  std::vector<std::thread> callers;
  std::atomic<int> ended = 0;
  std::atomic<int> sum = 0;
  weir::run([&]() -> task<> {
    // The slow ones still sleep when the scope ends; without a grace of its own it waits 30 s.
    co_await weir::with_scope(grace_of(10ms), [&](weir::scope& s) -> task<> {
      auto ref = weir::spawn_agent<counter>(s, {.name = "counter"}, 0);
      for (int who = 0; who < 3; ++who) {
        auto slow = weir::spawn_agent<counter>(s, {.name = "slow"}, 0);
        callers.emplace_back([&, ref, slow] {
          for (int i = 0; i < 50; ++i) sum += weir::run(ref.call(&counter::fetch_inc));
          EXPECT_EQ(boom_of(thrown_by([&] { return weir::run(ref.call(&counter::fail, 7)), 0; })),
                    7);
          EXPECT_THROW(weir::run(weir::with_timeout(1ms, slow.call(&counter::get_after, 1h))),
                       weir::timeout_error);
          ++ended;
        });
      }
      co_await wait_until([&] { return ended == 3; });
      s.cancel();
    });
  });
  for (auto& t : callers) t.join();
  EXPECT_EQ(sum, 149 * 150 / 2);
}
