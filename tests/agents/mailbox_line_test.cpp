// SPDX-License-Identifier: MIT
// Senders that wait for room in a full mailbox, with messages in the inbox of the agent's loop.
#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

class listener {
 public:
  explicit listener(std::vector<int>* heard) : heard_(heard) {}
  task<> pause() { co_await weir::sleep(1ms); }
  void hear(int n) { heard_->push_back(n); }
  int answer(int n) {
    heard_->push_back(n);
    return n;
  }

 private:
  std::vector<int>* heard_;
};

}  // namespace

TEST(mailbox_line, whoever_waits_for_room_does_not_overtake_what_is_in_the_inbox) {
  for_each_order([](weir::sim::world& in) {
    std::vector<int> heard;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const weir::agent_options options{.capacity = 1, .overflow = weir::overflow::wait};
        auto a = weir::spawn_agent<listener>(s, options, &heard);
        a.cast(&listener::pause);
        co_await weir::yield();
        // From now on everything to this loop goes through its inbox, to keep the order.
        weir::this_loop().post([] {});
        if (a.cast(&listener::hear, 1) != weir::sent::enqueued) co_return;
        co_await a.send(&listener::hear, 2);
        weir::this_loop().post([] {});
        EXPECT_EQ(co_await a.call(&listener::answer, 3), 3);
        EXPECT_EQ(heard, (std::vector{1, 2, 3}));
      });
    });
  });
}

TEST(mailbox_line, one_who_gives_up_on_the_way_to_the_line_is_not_heard) {
  for_each_order([](weir::sim::world& in) {
    std::vector<int> heard;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        const weir::agent_options options{.capacity = 1, .overflow = weir::overflow::wait};
        auto a = weir::spawn_agent<listener>(s, options, &heard);
        a.cast(&listener::pause);
        co_await weir::yield();
        weir::this_loop().post([] {});
        if (a.cast(&listener::hear, 1) != weir::sent::enqueued) co_return;
        auto leave = [&](weir::scope& inner) -> task<> {
          inner.spawn(a.send(&listener::hear, 2));
          inner.spawn(a.call(&listener::answer, 3));
          co_await weir::yield();
          inner.cancel();
        };
        (void)co_await weir::settle(weir::with_scope(leave));
        co_await a.send(&listener::hear, 4);
        co_await a.stop();
        EXPECT_EQ(heard, (std::vector{1, 4}));
      });
    });
  });
}

TEST(mailbox_line, a_call_that_was_begun_is_not_evicted) {
  // Its handler is unwound when the agent is cut off; new messages come before that is answered.
  for_each_order([](weir::sim::world& in) {
    std::vector<int> heard;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::supervisor sup;
        auto a = sup.add<listener>({.name = "a",
                                    .shutdown = weir::no_wait,
                                    .capacity = 1,
                                    .overflow = weir::overflow::drop_oldest,
                                    .on = in.loop("b")},
                                   &heard);
        (void)s.spawn(sup.run());
        co_await a.call(&listener::answer, 0);
        auto answer = s.spawn(attempt([&] { return a.call(&listener::pause); }));
        while (a.info().state != weir::agent_state::running) co_await weir::yield();
        auto end = s.spawn(sup.terminate_child("a"));
        for (int i = 1; i < 20; ++i) {
          a.cast(&listener::hear, i);
          co_await weir::yield();
        }
        const auto error = co_await answer;
        if (error) {
          EXPECT_EQ(code_of(error), weir::errc::agent_stopped);
        }
        co_await end;
        co_await sup.stop();
      });
    });
  });
}

TEST(mailbox_line, a_call_that_was_begun_and_left_is_handled_and_not_skipped) {
  for_each_order([](weir::sim::world& in) {
    std::vector<int> heard;
    in.run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        weir::supervisor sup;
        auto a = sup.add<listener>({.name = "a", .shutdown = weir::no_wait}, &heard);
        (void)s.spawn(sup.run());
        co_await a.call(&listener::answer, 0);
        auto leave = [&](weir::scope& inner) -> task<> {
          (void)inner.spawn(a.call(&listener::pause));
          while (a.info().state != weir::agent_state::running) co_await weir::yield();
          inner.cancel();
        };
        (void)co_await weir::settle(weir::with_scope(leave));
        co_await sup.terminate_child("a");
        EXPECT_EQ(a.info().handled, 2U);
        EXPECT_EQ(a.info().skipped, 0U);
        co_await sup.stop();
      });
    });
  });
}
