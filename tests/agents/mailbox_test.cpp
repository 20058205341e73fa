// SPDX-License-Identifier: MIT
// Full mailboxes: every overflow policy with casts, sends and calls, the order of waiting senders,
// and what a full mailbox does not block.
#include "agent_support.hpp"

using namespace weir_test;
using weir::overflow;

namespace {

class box {
 public:
  explicit box(numbers* seen) : seen_(seen) {}
  int put(int n) {
    seen_->push_back(n);
    return n;
  }
  task<> nap(weir::duration d) { co_await weir::sleep(d); }
  void fail(int n) { throw boom(n); }

 private:
  numbers* seen_;
};

weir::agent_options mailbox_options(std::int64_t capacity, overflow how) {
  weir::agent_options options;
  options.name = "box";
  options.capacity = capacity;
  options.overflow = how;
  return options;
}

/// Makes a box whose handler is busy for 100 ms, so that what follows stays in the mailbox.
task<agent_ref<box>> busy_box(weir::scope& s, std::int64_t capacity, overflow how, numbers& seen) {
  auto b = weir::spawn_agent<box>(s, mailbox_options(capacity, how), &seen);
  EXPECT_EQ(b.cast(&box::nap, 100ms), sent::enqueued);
  co_await settled();
  co_return b;
}

/// Runs `body(scope&, agent_ref<box>)` with a busy box and gives what was handled.
template <class F>
task<numbers> with_busy_box(std::int64_t capacity, overflow how, F& body) {
  numbers seen;
  auto inside = [&](weir::scope& s) -> task<> {
    auto b = co_await busy_box(s, capacity, how, seen);
    co_await body(s, b);
  };
  co_await weir::with_scope(inside);
  co_return seen;
}

}  // namespace

// ------------------------------------------------------------------ wait

FIBER_TEST_IN_EVERY_ORDER(mailbox, wait_lets_sends_and_calls_wait_in_one_order_and_casts_never) {
  auto body = [](weir::scope& s, agent_ref<box> b) -> task<> {
    co_await b.send(&box::put, 1);
    EXPECT_EQ(b.cast(&box::put, 99), sent::full);
    auto two = s.spawn(b.send(&box::put, 2));
    co_await settled();
    auto three = s.spawn(b.call(&box::put, 3));
    co_await settled();
    auto four = s.spawn(b.send(&box::put, 4));
    co_await settled();
    EXPECT_EQ(b.cast(&box::put, 98), sent::full);
    EXPECT_FALSE(two.done() || three.done() || four.done());
    EXPECT_EQ(b.info().queued, 1U);
    const int answer = co_await three;
    EXPECT_EQ(answer, 3);
    co_await two;
    co_await four;
  };
  const numbers seen = co_await with_busy_box(1, overflow::wait, body);
  EXPECT_EQ(seen, (numbers{1, 2, 3, 4}));
}

FIBER_TEST_IN_EVERY_ORDER(mailbox, wait_lets_no_newcomer_overtake_who_waits) {
  auto body = [](weir::scope& s, agent_ref<box> b) -> task<> {
    co_await b.send(&box::put, 1);
    for (int i = 2; i <= 4; ++i) {
      s.spawn(b.send(&box::put, i));
      co_await settled();
    }
    // The newcomer tries from the moment at which the first slot becomes free.
    auto newcomer = s.spawn([&]() -> task<> {
      while (b.cast(&box::put, 5) != sent::enqueued) co_await weir::sleep(1ms);
    });
    co_await newcomer;
    co_await s.join();
  };
  const numbers seen = co_await with_busy_box(1, overflow::wait, body);
  EXPECT_EQ(seen, (numbers{1, 2, 3, 4, 5}));
}

FIBER_TEST_IN_EVERY_ORDER(mailbox, a_withdrawn_send_or_call_leaves_nothing) {
  auto body = [](weir::scope& s, agent_ref<box> b) -> task<> {
    co_await b.send(&box::put, 1);
    const auto late = co_await error_of(weir::with_timeout(5ms, b.send(&box::put, 98)));
    EXPECT_TRUE(holds<weir::timeout_error>(late));
    const auto later = co_await error_of(weir::with_timeout(5ms, b.call(&box::put, 97)));
    EXPECT_TRUE(holds<weir::timeout_error>(later));
    auto leaves = s.spawn(b.send(&box::put, 96));
    co_await settled();
    auto stays = s.spawn(b.send(&box::put, 2));
    co_await settled();
    leaves.cancel();
    const auto end = co_await weir::settle(leaves);
    EXPECT_TRUE(end.is_cancelled());
    co_await stays;
  };
  const numbers seen = co_await with_busy_box(1, overflow::wait, body);
  EXPECT_EQ(seen, (numbers{1, 2}));
}

TEST(mailbox, the_value_of_a_withdrawn_send_is_destroyed) {
  struct sink {
    void take(counted_value) {}
    task<> nap(weir::duration d) { co_await weir::sleep(d); }
  };
  in_every_order([]() -> task<> {
    int alive = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<sink>(s, mailbox_options(1, overflow::wait));
      a.cast(&sink::nap, 20ms);
      co_await settled();
      co_await a.send(&sink::take, counted_value(1, alive));
      auto sends = [&]() -> task<> { co_await a.send(&sink::take, counted_value(2, alive)); };
      auto leaves = s.spawn(sends);
      co_await settled();
      EXPECT_EQ(alive, 2);
      leaves.cancel();
      co_await settled();
      EXPECT_EQ(alive, 1);
    });
    EXPECT_EQ(alive, 0);
  });
}

FIBER_TEST_IN_EVERY_ORDER(mailbox, those_who_wait_for_room_hear_of_the_end) {
  numbers seen;
  std::error_code sending, calling;
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      auto b = weir::spawn_agent<box>(s, mailbox_options(1, overflow::wait), &seen);
      b.cast(&box::nap, 5ms);
      co_await settled();
      EXPECT_EQ(b.cast(&box::fail, 1), sent::enqueued);
      callers.spawn([&, b]() -> task<> { sending = co_await code_of_send(b, &box::put, 2); });
      callers.spawn([&, b]() -> task<> { calling = co_await code_of_call(b, &box::put, 3); });
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(boom_of(co_await error_of_scope(body)), 1);
    co_await callers.join();
  });
  // One of them may have been let in when the failing message was taken out.
  EXPECT_TRUE(sending == errc::agent_crashed || sending == std::error_code());
  EXPECT_EQ(calling, errc::agent_crashed);
  EXPECT_TRUE(seen.empty());
}

FIBER_TEST_IN_EVERY_ORDER(mailbox,
                          those_who_wait_for_room_when_a_stop_comes_are_refused_or_handled) {
  std::error_code sending, calling;
  auto body = [&](weir::scope& s, agent_ref<box> b) -> task<> {
    co_await b.send(&box::put, 1);
    auto one = s.spawn([&]() -> task<> { sending = co_await code_of_send(b, &box::put, 2); });
    co_await settled();
    auto other = s.spawn([&]() -> task<> { calling = co_await code_of_call(b, &box::put, 3); });
    co_await settled();
    co_await b.stop();
    co_await one;
    co_await other;
  };
  numbers expected{1};
  const numbers seen = co_await with_busy_box(1, overflow::wait, body);
  if (sending == std::error_code()) expected.push_back(2);
  if (calling == std::error_code()) expected.push_back(3);
  EXPECT_EQ(seen, expected);
  for (const std::error_code& code : {sending, calling})
    EXPECT_TRUE(code == std::error_code() || code == errc::agent_stopped) << code.message();
}

// ------------------------------------------------------------------ reject, drop

FIBER_TEST_IN_EVERY_ORDER(mailbox, reject_refuses_everything_that_finds_no_room) {
  auto body = [](weir::scope&, agent_ref<box> b) -> task<> {
    EXPECT_EQ(b.cast(&box::put, 1), sent::enqueued);
    co_await b.send(&box::put, 2);
    const auto start = weir::now();
    EXPECT_EQ(b.cast(&box::put, 99), sent::full);
    EXPECT_EQ(co_await code_of_send(b, &box::put, 98), errc::mailbox_full);
    EXPECT_EQ(co_await code_of_call(b, &box::put, 97), errc::mailbox_full);
    EXPECT_EQ(weir::now(), start);
    EXPECT_EQ(b.info().queued, 2U);
  };
  const numbers seen = co_await with_busy_box(2, overflow::reject, body);
  EXPECT_EQ(seen, (numbers{1, 2}));
}

SCOPE_TEST_IN_EVERY_ORDER(mailbox, reject_is_the_default_and_its_error_names_the_agent) {
  auto c = weir::spawn_agent<counter>(s, {.name = "narrow", .capacity = 1});
  c.cast(&counter::nap, 5ms);
  co_await settled();
  EXPECT_EQ(c.cast(&counter::inc, 1), sent::enqueued);
  const auto error = co_await error_of(c.call(&counter::get));
  EXPECT_TRUE(holds<weir::agent_error>(error));
  EXPECT_EQ(code_of(error), errc::mailbox_full);
  EXPECT_TRUE(contains(what_of(error), "narrow")) << what_of(error);
}

FIBER_TEST_IN_EVERY_ORDER(mailbox, drop_newest_drops_casts_and_counts_them) {
  auto body = [](weir::scope&, agent_ref<box> b) -> task<> {
    for (int i = 1; i <= 2; ++i) EXPECT_EQ(b.cast(&box::put, i), sent::enqueued);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(b.cast(&box::put, 99), sent::dropped);
    EXPECT_EQ(b.info().dropped, 3U);
    EXPECT_EQ(co_await code_of_send(b, &box::put, 98), errc::mailbox_full);
    EXPECT_EQ(co_await code_of_call(b, &box::put, 97), errc::mailbox_full);
  };
  const numbers seen = co_await with_busy_box(2, overflow::drop_newest, body);
  EXPECT_EQ(seen, (numbers{1, 2}));
}

FIBER_TEST_IN_EVERY_ORDER(mailbox, drop_oldest_evicts_and_counts_and_an_evicted_call_is_told) {
  auto body = [](weir::scope& s, agent_ref<box> b) -> task<> {
    std::error_code evicted;
    EXPECT_EQ(b.cast(&box::put, 1), sent::enqueued);
    auto call = s.spawn([&]() -> task<> { evicted = co_await code_of_call(b, &box::put, 2); });
    co_await settled();
    EXPECT_EQ(b.cast(&box::put, 3), sent::enqueued);  // 1 is gone
    EXPECT_EQ(b.info().dropped, 1U);
    EXPECT_FALSE(call.done());
    EXPECT_EQ(b.cast(&box::put, 4), sent::enqueued);  // 2 is gone
    co_await call;
    EXPECT_EQ(evicted, errc::mailbox_full);
    EXPECT_EQ(b.info().queued, 2U);
    co_await b.send(&box::put, 5);  // 3 is gone
    EXPECT_EQ(b.info().dropped, 3U);
    auto last = s.spawn(b.call(&box::put, 6));  // 4 is gone
    const int answer = co_await last;
    EXPECT_EQ(answer, 6);
  };
  const numbers seen = co_await with_busy_box(2, overflow::drop_oldest, body);
  EXPECT_EQ(seen, (numbers{5, 6}));
}

// ------------------------------------------------------------------ stop

TEST(mailbox, stop_crashes_the_agent_when_there_is_no_room) {
  for (int way = 0; way < 3; ++way) {
    in_every_order([&]() -> task<> {
      numbers seen;
      std::error_code queued, calling, sending;
      sent casting = sent::enqueued;
      std::optional<agent_ref<box>> b;
      co_await weir::with_scope([&](weir::scope& callers) -> task<> {
        auto body = [&](weir::scope& s) -> task<> {
          b = weir::spawn_agent<box>(s, mailbox_options(1, overflow::stop), &seen);
          b->cast(&box::nap, 100ms);
          co_await settled();
          callers.spawn([&]() -> task<> { queued = co_await code_of_call(*b, &box::put, 1); });
          co_await settled();
          if (way == 0) casting = b->cast(&box::put, 2);
          if (way == 1) calling = co_await weir::shield(code_of_call(*b, &box::put, 3));
          if (way == 2) sending = co_await weir::shield(code_of_send(*b, &box::put, 4));
          co_await weir::sleep(1h);
        };
        const std::exception_ptr error = co_await error_of_scope(body);
        EXPECT_TRUE(holds<weir::error>(error)) << what_of(error);
        EXPECT_TRUE(contains(what_of(error), "box")) << what_of(error);
        co_await callers.join();
      });
      EXPECT_EQ(queued, errc::agent_crashed);
      if (way == 0) {
        EXPECT_EQ(casting, sent::stopped);
      }
      if (way == 1) {
        EXPECT_EQ(calling, errc::agent_crashed);
      }
      if (way == 2) {
        EXPECT_EQ(sending, errc::mailbox_full);
      }
      EXPECT_EQ(co_await b->monitor(), ending::crashed);
      EXPECT_TRUE(seen.empty());
    });
  }
}

TEST(mailbox, stop_crashes_the_agent_also_before_it_has_begun) {
  for (const bool elsewhere : {false, true}) {
    in_every_order([&]() -> task<> {
      numbers seen;
      std::optional<agent_ref<box>> b;
      co_await weir::with_scope([&](weir::scope& outer) -> task<> {
        const weir::loop_thread t(outer, {.name = "there"});
        auto body = [&](weir::scope& s) -> task<> {
          weir::agent_options options = mailbox_options(1, overflow::stop);
          if (elsewhere) options.on = t;
          b = weir::spawn_agent<box>(s, options, &seen);
          EXPECT_EQ(b->cast(&box::put, 1), sent::enqueued);
          EXPECT_EQ(b->cast(&box::put, 2), sent::stopped);
          co_await weir::sleep(1h);
        };
        const std::exception_ptr error = co_await error_of_scope(body);
        EXPECT_EQ(code_of(error), errc::mailbox_full) << what_of(error);
      });
      EXPECT_EQ(co_await b->monitor(), ending::crashed);
      EXPECT_EQ(b->info().dropped, 2U);
      EXPECT_TRUE(seen.empty());
    });
  }
}

// ------------------------------------------------------------------ what cannot be blocked

FIBER_TEST_IN_EVERY_ORDER(mailbox, the_message_that_is_being_handled_takes_no_room) {
  auto body = [](weir::scope&, agent_ref<box> b) -> task<> {
    EXPECT_EQ(b.info().queued, 0U);
    EXPECT_EQ(b.info().state, agent_state::running);
    EXPECT_EQ(b.cast(&box::put, 1), sent::enqueued);
    EXPECT_EQ(b.cast(&box::put, 2), sent::full);
    co_return;
  };
  const numbers seen = co_await with_busy_box(1, overflow::reject, body);
  EXPECT_EQ(seen, (numbers{1}));
}
TEST(mailbox, a_full_mailbox_of_one_blocks_neither_a_stop_nor_a_reply) {
  for (const overflow how : {overflow::wait, overflow::reject, overflow::drop_newest}) {
    in_every_order([&]() -> task<> {
      numbers seen;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        auto b = weir::spawn_agent<box>(s, mailbox_options(1, how), &seen);
        const auto start = weir::now();
        auto slow = s.spawn(b.call(&box::nap, 50ms));
        co_await settled();
        EXPECT_EQ(b.cast(&box::put, 1), sent::enqueued);
        EXPECT_NE(b.cast(&box::put, 99), sent::enqueued);
        co_await b.stop();
        EXPECT_EQ(ms_since(start), 50);
        co_await slow;
      });
      EXPECT_EQ(seen, numbers{1});
    });
  }
}

TEST(mailbox, two_agents_with_mailboxes_of_one_that_answer_each_other_do_not_block) {
  class player {
   public:
    explicit player(int* hits) : hits_(hits) {}
    task<> play(agent_ref<player> other, int left) {
      ++*hits_;
      if (left > 0) co_await other.send(&player::play, weir::self<player>(), left - 1);
    }

   private:
    int* hits_;
  };
  in_every_order([]() -> task<> {
    int hits = 0;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<player>(s, mailbox_options(1, overflow::wait), &hits);
      auto b = weir::spawn_agent<player>(s, mailbox_options(1, overflow::wait), &hits);
      a.cast(&player::play, b, 20);
      co_await weir::sleep(1s);
    });
    EXPECT_EQ(hits, 21);
  });
}

// ------------------------------------------------------------------ the own chain

namespace {

/// Sends to itself, or lets another one send back.
class talker {
 public:
  std::error_code code() const { return code_; }
  void note() { ++notes_; }
  int notes() const { return notes_; }
  task<> fill_myself(int messages) {
    auto me = weir::self<talker>();
    for (int i = 0; i < messages; ++i) {
      code_ = co_await code_of_send(me, &talker::note);
      if (code_) co_return;
    }
  }
  task<std::error_code> send_to(agent_ref<talker> to) {
    co_return co_await code_of_send(to, &talker::note);
  }
  /// Lets another one send to this one, while the own mailbox has room or is filled.
  task<> ask(agent_ref<talker> other, bool filled) {
    if (filled) {
      EXPECT_EQ(weir::self<talker>().cast(&talker::note), sent::enqueued);
    }
    code_ = co_await other.call(&talker::send_to, weir::self<talker>());
  }

 private:
  std::error_code code_;
  int notes_ = 0;
};

}  // namespace

SCOPE_TEST_IN_EVERY_ORDER(mailbox, waiting_for_room_in_the_own_one_is_a_call_cycle) {
  auto t = weir::spawn_agent<talker>(s, mailbox_options(2, overflow::wait));
  co_await t.call(&talker::fill_myself, 2);
  EXPECT_EQ(co_await t.call(&talker::code), std::error_code());
  EXPECT_EQ(co_await t.call(&talker::notes), 2);
  co_await t.call(&talker::fill_myself, 3);
  EXPECT_EQ(co_await t.call(&talker::code), errc::call_cycle);
  EXPECT_EQ(co_await t.call(&talker::notes), 4);
}

SCOPE_TEST_IN_EVERY_ORDER(mailbox, waiting_for_room_in_one_of_the_own_chain_is_a_call_cycle) {
  auto a = weir::spawn_agent<talker>(s, mailbox_options(1, overflow::wait));
  auto b = weir::spawn_agent<talker>(s, {.name = "b"});
  co_await a.call(&talker::ask, b, false);
  EXPECT_EQ(co_await a.call(&talker::code), std::error_code());
  EXPECT_EQ(co_await a.call(&talker::notes), 1);
  co_await a.call(&talker::ask, b, true);
  EXPECT_EQ(co_await a.call(&talker::code), errc::call_cycle);
  EXPECT_EQ(co_await a.call(&talker::notes), 2);
}

// ------------------------------------------------------------------ unbounded
FIBER_TEST(mailbox, an_unbounded_one_says_when_it_is_high_and_at_each_doubling) {
  numbers at;
  const auto watch = weir::on_event([&](const weir::event_info& e) {
    if (e.name != "mailbox_high") return;
    EXPECT_EQ(e.object, "hoard");
    at.push_back(static_cast<int>(e.number));
  });
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {.name = "hoard"});
    c.cast(&counter::nap, 1ms);
    co_await weir::yield();
    for (int i = 0; i < 9'990; ++i) c.cast(&counter::inc, 1);
    EXPECT_TRUE(at.empty());
    for (int i = 0; i < 35'010; ++i) c.cast(&counter::inc, 1);
    EXPECT_EQ(at, (numbers{10'000, 20'000, 40'000}));
    EXPECT_EQ(co_await c.call(&counter::get), 45'000);
  });
}

FIBER_TEST(mailbox, a_bounded_one_that_is_full_is_no_news) {
  int high = 0;
  const auto watch = count_events("mailbox_high", "box", high);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    numbers seen;
    auto b = weir::spawn_agent<box>(s, mailbox_options(20'000, overflow::reject), &seen);
    for (int i = 0; i < 20'000; ++i) b.cast(&box::put, i);
    EXPECT_EQ(b.cast(&box::put, 1), sent::full);
    co_await b.stop();
    EXPECT_EQ(seen.size(), 20'000U);
  });
  EXPECT_EQ(high, 0);
}
