// SPDX-License-Identifier: MIT
// Agents on another loop: messages and requests before their life has begun there.
#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

class idler {
 public:
  explicit idler(int* handled) : handled_(handled) {}
  void touch() { ++*handled_; }

 private:
  int* handled_;
};

}  // namespace

TEST(remote_life, a_scope_that_ends_at_once_ends_its_agent_on_another_loop) {
  for_each_order([](weir::sim::world& in) {
    int handled = 0;
    in.run([&]() -> task<> {
      const auto begun = weir::now();
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto a = weir::spawn_agent<idler>(s, {.on = in.loop("b")}, &handled);
        EXPECT_EQ(a.cast(&idler::touch), weir::sent::enqueued);
        co_return;
      });
      EXPECT_EQ(weir::now(), begun) << "it was not asked, but cancelled when the grace was over";
    });
    EXPECT_EQ(handled, 1);
  });
}

TEST(remote_life, an_agent_that_is_stopped_at_once_handles_what_was_sent_before_and_ends) {
  for_each_order([](weir::sim::world& in) {
    int handled = 0;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto a = weir::spawn_agent<idler>(s, {.on = in.loop("b")}, &handled);
        EXPECT_EQ(a.cast(&idler::touch), weir::sent::enqueued);
        co_await a.stop();
        EXPECT_EQ(handled, 1);
        EXPECT_EQ(a.info().state, weir::agent_state::ended);
        EXPECT_EQ(co_await a.monitor(), weir::ending::normal);
      });
    });
  });
}

TEST(remote_life, an_agent_whose_scope_is_cancelled_at_once_is_reported_to_have_ended) {
  for_each_order([](weir::sim::world& in) {
    int handled = 0;
    in.run([&]() -> task<> {
      std::optional<weir::agent_ref<idler>> a;
      auto body = [&](weir::scope& s) -> task<> {
        a.emplace(weir::spawn_agent<idler>(s, {.on = in.loop("b")}, &handled));
        s.cancel("at once");
        co_return;
      };
      weir::scope_options options;
      options.grace = 0ms;
      (void)co_await weir::settle(weir::with_scope(options, body));
      (void)co_await a->monitor();
      EXPECT_EQ(a->info().state, weir::agent_state::ended);
    });
  });
}

TEST(remote_life, a_child_that_is_terminated_at_once_ends_although_it_has_no_limit) {
  for_each_order([](weir::sim::world& in) {
    int handled = 0;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::supervisor sup;
        auto first = sup.add<idler>({.name = "first"}, &handled);
        (void)s.spawn(sup.run());
        co_await first.call(&idler::touch);
        auto a =
            sup.add<idler>({.name = "a", .shutdown = weir::no_limit, .on = in.loop("b")}, &handled);
        co_await weir::yield();
        co_await sup.terminate_child("a");
        const auto after = co_await attempt([&] { return a.call(&idler::touch); });
        EXPECT_EQ(code_of(after), weir::errc::agent_stopped);
        co_await sup.stop();
      });
    });
  });
}

TEST(remote_life, a_timer_that_is_armed_at_once_belongs_to_the_first_life) {
  for_each_order([](weir::sim::world& in) {
    int handled = 0;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto a = weir::spawn_agent<idler>(s, {.on = in.loop("b")}, &handled);
        (void)a.cast_after(1ms, &idler::touch);
        auto every = a.cast_every(1ms, &idler::touch);
        auto never = a.cast_after(1ms, &idler::touch);
        never.cancel();
        co_await weir::sleep(3500us);
        every.cancel();
        EXPECT_EQ(a.info().dropped, 0U);
      });
    });
    EXPECT_EQ(handled, 4);
  });
}

TEST(remote_life, an_agent_whose_loop_ends_before_it_lives_has_ended) {
  for_each_order([](weir::sim::world& in) {
    int handled = 0;
    in.run([&]() -> task<> {
      std::optional<weir::agent_ref<idler>> a;
      auto body = [&](weir::scope& s) -> task<> {
        a.emplace(weir::spawn_agent<idler>(s, {.on = in.loop("b")}, &handled));
        auto end = a->stop();
        in.crash("b");
        co_await end;
      };
      (void)co_await weir::settle(weir::with_scope(body));
      (void)co_await a->monitor();
      EXPECT_EQ(a->info().state, weir::agent_state::ended);
    });
  });
}
