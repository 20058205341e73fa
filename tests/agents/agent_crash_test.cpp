// SPDX-License-Identifier: MIT
// Agents and callers on loops that crash.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

/// One call or send, which must end with a value or with the news that the agent is gone.
task<> ask_or_tell(agent_ref<counter> to, bool asks, int& answers) {
  std::error_code code;
  if (asks) {
    code = co_await code_of_call(to, &counter::get);
  } else {
    code = co_await code_of_send(to, &counter::inc, 1);
  }
  EXPECT_TRUE(!code || code == errc::loop_gone || code == errc::agent_stopped) << code.message();
  ++answers;
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent_crash, of_the_agents_loop_tells_every_caller_that_it_is_gone) {
  std::optional<agent_ref<counter>> c;
  auto body = [&](weir::scope& s) -> task<> {
    c = weir::spawn_agent<counter>(s, options_on(w.loop("a"), "c"));
    EXPECT_EQ(co_await c->call(&counter::get), 0);
    co_await weir::with_scope([&](weir::scope& callers) -> task<> {
      std::vector<weir::child<std::error_code>> all;
      for (int i = 0; i < 3; ++i) {
        all.push_back(callers.spawn(code_of_call(*c, &counter::nap, 1h)));
        all.push_back(callers.spawn_on(w.loop("b"), code_of_call(*c, &counter::nap, 1h)));
      }
      co_await settled();
      auto crashes = [&]() -> task<> {
        w.crash("a");
        for (auto& one : all) {
          const std::error_code code = co_await one;
          EXPECT_EQ(code, errc::loop_gone);
        }
      };
      co_await weir::shield(crashes);
    });
  };
  const std::exception_ptr error = co_await error_of_scope(body);
  EXPECT_TRUE(error == nullptr || code_of(error) == errc::loop_gone) << what_of(error);
  EXPECT_EQ(c->cast(&counter::inc, 1), sent::stopped);
  const std::error_code code = co_await code_of_call(*c, &counter::get);
  EXPECT_TRUE(code == errc::loop_gone || code == errc::agent_stopped) << code.message();
  co_await c->join();
}

TEST(agent_crash, of_the_agents_loop_at_any_moment_lets_every_call_and_send_end) {
  for_each_order([](weir::sim::world& w) {
    int answers = 0;
    w.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& callers) -> task<> {
        auto body = [&](weir::scope& s) -> task<> {
          weir::agent_options options = options_on(w.loop("a"), "c");
          options.capacity = 1;
          options.overflow = weir::overflow::wait;
          auto c = weir::spawn_agent<counter>(s, options);
          for (int i = 0; i < 4; ++i) {
            callers.spawn(ask_or_tell(c, i % 2 == 0, answers));
            callers.spawn_on(w.loop("b"), ask_or_tell(c, i % 2 == 0, answers));
          }
          for (auto i = weir::random() % 8; i > 0; --i) co_await weir::yield();
          w.crash("a");
          co_await callers.idle();
        };
        const std::exception_ptr error = co_await error_of_scope(body);
        EXPECT_TRUE(error == nullptr || code_of(error) == errc::loop_gone) << what_of(error);
        co_await callers.join();
      });
    });
    EXPECT_EQ(answers, 8);
  });
}

SCOPE_TEST_IN_EVERY_ORDER(agent_crash,
                          of_a_callers_loop_leaves_the_agent_and_the_other_callers_alone) {
  weir::agent_options options;
  options.name = "c";
  options.capacity = 2;
  options.overflow = weir::overflow::wait;
  auto c = weir::spawn_agent<counter>(s, options, 5);
  auto calls = [&]() -> task<> {
    for (;;) (void)co_await c.call(&counter::get_after, 1ms);
  };
  auto sends = [&]() -> task<> {
    for (;;) co_await c.send(&counter::nap, 1ms);
  };
  std::vector<weir::child<weir::outcome<void>>> lost;
  for (int i = 0; i < 2; ++i) {
    lost.push_back(s.spawn(weir::settle(weir::on(w.loop("a"), calls))));
    lost.push_back(s.spawn(weir::settle(weir::on(w.loop("a"), sends))));
  }
  for (auto i = weir::random() % 5; i > 0; --i) co_await weir::sleep(1ms);
  w.crash("a");
  for (auto& one : lost) co_await one;
  EXPECT_EQ(co_await c.call(&counter::get), 5);
  EXPECT_EQ(c.info().queued, 0U);
  co_await c.stop();
}

FIBER_TEST_IN_EVERY_ORDER(
    agent_crash, of_the_owners_loop_leaves_an_agent_elsewhere_that_answers_and_can_be_stopped) {
  std::optional<agent_ref<counter>> c;
  auto owns = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      c = weir::spawn_agent<counter>(s, options_on(w.loop("b"), "c"));
      co_await weir::sleep(1000h);
    });
  };
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto owner = s.spawn(weir::settle(weir::on(w.loop("a"), owns)));
    co_await settled();
    EXPECT_EQ(co_await c->call(&counter::get), 0);
    w.crash("a");
    co_await owner;
    const std::error_code code = co_await code_of_call(*c, &counter::get);
    EXPECT_TRUE(!code || code == errc::agent_stopped) << code.message();
    co_await c->stop();
    co_await c->join();
    EXPECT_EQ(c->info().state, agent_state::ended);
    co_await settled();  // nobody waits for what is left of it over there
  });
}
