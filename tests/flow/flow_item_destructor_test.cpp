// SPDX-License-Identifier: MIT
// "Items' destructors may use the container they came from": an item whose destructor does
// something to its container, in every container and in every way out of it. What is moved from
// has a destructor too, and does the same. ASan is the judge; here everything is counted.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flow_support.hpp"
#include "toolkit/hostile_support.hpp"

using namespace weir_test;

namespace {

using hostile_queue = weir::queue<hostile>;

const std::vector<deed<hostile_queue>> queue_deeds = {
    {"try_next", [](auto& q) { (void)q.try_next(); }},
    {"try_push", [](auto& q) { (void)q.try_push(hostile(7)); }},
    {"both", [](auto& q) { (void)q.try_push(hostile(8)), (void)q.try_next(); }},
    {"close", [](auto& q) { q.close(); }},
    {"discard", [](auto& q) { q.discard(); }},
    {"fail", [](auto& q) { q.fail(std::make_exception_ptr(boom(1))); }},
    {"nothing", [](auto&) {}},
};
constexpr std::int64_t all_capacities[] = {0, 1, 2, 5, weir::unbounded};

/// Runs `program(queue, act)` for every deed and capacity.
template <class F>
void for_each_queue_and_deed(F program) {
  for (const auto& d : queue_deeds)
    for (const std::int64_t capacity : all_capacities) {
      SCOPED_TRACE(std::string(d.name) + " with capacity " + std::to_string(capacity));
      hostile::alive = 0;
      in_order([&]() -> task<> {
        std::function<void()> act;
        {
          hostile_queue q(capacity);
          act = [&] { d.does(q); };
          co_await program(q, act);
        }
        act = nullptr;
      });
      EXPECT_EQ(hostile::alive, 0);
    }
}

void fill(hostile_queue& q, const std::function<void()>& act) {
  for (int i = 0; i < 9; ++i) (void)q.try_push(hostile(i, &act));
}

task<> push_hostile(hostile_queue& q, int n, const std::function<void()>& act) {
  hostile item(n, &act);
  co_await weir::settle(q.push(item));
}

/// Takes what is there; fail() may have been called.
void poke(hostile_queue& q) {
  try {
    (void)q.try_next();
  } catch (const boom&) {
  }
}

task<> next_of(hostile_queue& q) { (void)co_await weir::settle(q.next()); }

}  // namespace

TEST(item_destructor, uses_the_queue_that_it_is_taken_from) {
  for_each_queue_and_deed([](hostile_queue& q, const std::function<void()>& act) -> task<> {
    fill(q, act);
    for (int i = 0; i < 40 && q.size() > 0; ++i) (void)co_await weir::settle(q.next());
  });
}

TEST(item_destructor, uses_the_queue_that_discards_it) {
  for_each_queue_and_deed([](hostile_queue& q, const std::function<void()>& act) -> task<> {
    fill(q, act);
    q.discard();
    EXPECT_EQ(q.size(), 0U);
    EXPECT_EQ(q.try_push(hostile(1, &act)), weir::errc::queue_closed);
    co_return;
  });
}

TEST(item_destructor, uses_the_queue_that_is_destroyed) {
  for_each_queue_and_deed([](hostile_queue& q, const std::function<void()>& act) -> task<> {
    fill(q, act);
    co_return;
  });
}

TEST(item_destructor, uses_the_queue_while_producers_are_served) {
  for_each_queue_and_deed([](hostile_queue& q, const std::function<void()>& act) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 12; ++i) s.spawn(push_hostile(q, i, act));
      co_await weir::yield();
      for (int i = 0; i < 6; ++i) poke(q);
      for (int i = 0; i < 3; ++i) s.spawn(next_of(q));
      co_await weir::yield();
      q.close();
    });
  });
}

TEST(item_destructor, uses_the_queue_that_a_value_comes_back_to) {
  for_each_queue_and_deed([](hostile_queue& q, const std::function<void()>& act) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto consumer = s.spawn(next_of(q));
      co_await weir::yield();
      (void)q.try_push(hostile(1, &act));
      consumer.cancel();  // it has been given a value, which comes back
      co_await s.idle();
      fill(q, act);
      q.close();
    });
  });
}

// Whoever is being served when the destructor cancels everything was served, or left.
TEST(item_destructor, cancels_those_who_wait_for_the_queue) {
  for (const std::int64_t capacity : all_capacities) {
    hostile::alive = 0;
    in_order([&]() -> task<> {
      std::function<void()> act;
      hostile_queue q(capacity);
      {
        auto outcome = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
          for (int i = 0; i < 12; ++i) s.spawn(push_hostile(q, i, act));
          co_await weir::yield();
          act = [&] { s.cancel(); };
          for (int i = 0; i < 9; ++i) (void)q.try_next();
          co_await weir::sleep(1s);
        }));
        EXPECT_FALSE(outcome.is_error());
      }
      act = nullptr;
    });
    EXPECT_EQ(hostile::alive, 0);
  }
}

// ------------------------------------------------------------------ channel

namespace {

struct hostile_channel {
  weir::sender<hostile> tx;
  weir::receiver<hostile> rx;
};

const std::vector<deed<hostile_channel>> channel_deeds = {
    {"try_next", [](auto& c) { (void)c.rx.try_next(); }},
    {"try_send", [](auto& c) { (void)!c.tx.try_send(hostile(7)); }},
    {"both", [](auto& c) { (void)!c.tx.try_send(hostile(8)), (void)c.rx.try_next(); }},
    {"close by the sender", [](auto& c) { c.tx.close(); }},
    {"close by the receiver", [](auto& c) { c.rx.close(); }},
    {"another sender", [](auto& c) { auto twin = c.tx; }},
};

template <class F>
void for_each_channel(F program) {
  for (const auto& d : channel_deeds)
    for (const std::int64_t capacity : {1, 2, 5}) {
      SCOPED_TRACE(std::string(d.name) + " with capacity " + std::to_string(capacity));
      hostile::alive = 0;
      in_order([&]() -> task<> {
        std::function<void()> act;
        {
          auto ends = weir::channel<hostile>(capacity);
          hostile_channel c{std::move(ends.first), std::move(ends.second)};
          act = [&] { d.does(c); };
          co_await program(c, act);
        }
        act = nullptr;
      });
      EXPECT_EQ(hostile::alive, 0);
    }
}

task<> send_hostile(hostile_channel& c, int n, const std::function<void()>& act) {
  hostile item(n, &act);
  co_await weir::settle(c.tx.send(item));
}

}  // namespace

TEST(item_destructor, uses_the_channel_that_it_is_taken_from) {
  for_each_channel([](hostile_channel& c, const std::function<void()>& act) -> task<> {
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 6; ++i) (void)!c.tx.try_send(hostile(i, &act));
      (void)c.rx.try_next();
      auto next = co_await weir::race(c.rx.next(), weir::sleep(1ms));
      (void)c.rx.try_next();
    }
  });
}

TEST(item_destructor, uses_the_channel_that_is_destroyed) {
  for_each_channel([](hostile_channel& c, const std::function<void()>& act) -> task<> {
    for (int i = 0; i < 6; ++i) (void)!c.tx.try_send(hostile(i, &act));
    co_return;
  });
}

TEST(item_destructor, uses_the_channel_while_senders_and_receivers_wait) {
  for_each_channel([](hostile_channel& c, const std::function<void()>& act) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto receive = [&]() -> task<> { (void)co_await weir::settle(c.rx.next()); };
      for (int i = 0; i < 9; ++i) s.spawn(send_hostile(c, i, act));
      co_await weir::yield();
      for (int i = 0; i < 6; ++i) s.spawn(receive);
      co_await weir::yield();
      s.cancel();
    });
  });
}

// ------------------------------------------------------------------ broadcast, replay, state

namespace {

using hostile_broadcast = weir::broadcast<hostile>;
using hostile_sub = weir::subscription<hostile>;

const std::vector<deed<hostile_broadcast>> broadcast_deeds = {
    {"subscribe", [](auto& b) { auto sub = b.subscribe({.replay = 2}); }},
    {"emit",
     [](auto& b) {
       if (!b.closed()) (void)b.try_emit(hostile(9));
     }},
    {"close", [](auto& b) { b.close(); }},
    {"fail", [](auto& b) { b.fail(std::make_exception_ptr(boom(2))); }},
    {"count", [](auto& b) { (void)b.subscribers(); }},
};

task<> emit_hostile(hostile_broadcast& b, int n, const std::function<void()>& act) {
  hostile item(n, &act);
  co_await weir::settle(b.emit(item));
}

/// Emits, reads and leaves, with one subscriber for each policy.
task<> use_broadcast(hostile_broadcast& b, const std::function<void()>& act) {
  std::vector<hostile_sub> subs;
  for (const weir::overflow policy : overflow_policies)
    subs.push_back(b.subscribe({.overflow = policy}));
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < 7; ++i) s.spawn(emit_hostile(b, i, act));
    co_await weir::yield();
    for (hostile_sub& sub : subs) (void)co_await weir::settle(weir::with_timeout(1ms, sub.next()));
    while (!subs.empty()) {
      subs.pop_back();  // unsubscribes, with what it has not read
      co_await weir::yield();
    }
    s.cancel();
  });
}

}  // namespace

TEST(item_destructor, uses_the_broadcast_that_it_falls_out_of) {
  for (const auto& d : broadcast_deeds)
    for (const std::int64_t capacity : {1, 2, 4}) {
      SCOPED_TRACE(std::string(d.name) + " with capacity " + std::to_string(capacity));
      hostile::alive = 0;
      in_order([&]() -> task<> {
        std::function<void()> act;
        {
          hostile_broadcast b(capacity);
          act = [&] { d.does(b); };
          auto all = co_await weir::settle(use_broadcast(b, act));
          for (int i = 0; i < 6 && !b.closed(); ++i) (void)b.try_emit(hostile(i, &act));
        }
        act = nullptr;
      });
      EXPECT_EQ(hostile::alive, 0);
    }
}

// An item that leaves the ring subscribes: what it sees has neither gap nor duplicate.
FIBER_TEST(item_destructor, subscribes_to_the_broadcast_in_the_middle_of_an_emit) {
  std::function<void()> act;
  std::vector<hostile_sub> late;
  {
    hostile_broadcast b(2);
    act = [&] {
      if (late.empty())
        late.push_back(b.subscribe({.overflow = weir::overflow::drop_oldest, .replay = 2}));
    };
    (void)b.try_emit(hostile(1));
    late.reserve(2);
    std::function<void()> once;
    {
      const hostile first(2, &once);
      (void)b.try_emit(first);
    }
    once = act;
    (void)b.try_emit(hostile(3));
    (void)b.try_emit(hostile(4));  // 2 falls out
    once = nullptr;
    EXPECT_EQ(late.size(), 1U);
    if (late.empty()) co_return;
    numbers seen;
    for (int i = 0; i < 2; ++i) {
      auto next = co_await late.front().next();
      seen.push_back(next->n);
    }
    EXPECT_EQ(seen, (numbers{3, 4}));
    late.clear();
  }
}

TEST(item_destructor, uses_replay_and_state) {
  hostile::alive = 0;
  in_order([]() -> task<> {
    std::function<void()> act;
    {
      weir::replay<hostile> r(2);
      act = [&] {
        auto sub = r.subscribe();
        if (!r.closed()) (void)r.try_emit(hostile(5));
      };
      for (int i = 0; i < 6; ++i) (void)r.try_emit(hostile(i, &act));
      r.close();
    }
    act = nullptr;
    {
      weir::state<hostile> st{hostile(1)};
      act = [&] {
        auto sub = st.subscribe();
        (void)st.get().n;
        st.set(hostile(77));
      };
      for (int i = 2; i < 6; ++i) st.set(hostile(i, &act));
      EXPECT_EQ(st.get().n, 77);
      act = nullptr;
    }
    co_return;
  });
  EXPECT_EQ(hostile::alive, 0);
}

// ------------------------------------------------------------------ oneshot, from_callback

TEST(item_destructor, uses_the_oneshot_that_held_it) {
  hostile::alive = 0;
  in_order([]() -> task<> {
    std::function<void()> act;
    {
      weir::oneshot<hostile> o;
      act = [&] {
        (void)o.is_set();
        (void)o.send(hostile(3));
        auto seen = o.future();
        (void)seen.done();
      };
      EXPECT_TRUE(o.send(hostile(1, &act)));
      EXPECT_FALSE(o.send(hostile(2, &act)));
      (void)(co_await o.receive()).n;
    }
    act = nullptr;
  });
  EXPECT_EQ(hostile::alive, 0);
}

TEST(item_destructor, uses_the_emitter_of_a_callback_stream) {
  for (const weir::overflow policy : {weir::overflow::reject, weir::overflow::drop_oldest,
                                      weir::overflow::drop_newest, weir::overflow::conflate}) {
    hostile::alive = 0;
    in_order([&]() -> task<> {
      std::function<void()> act;
      {
        std::optional<weir::emitter<hostile>> out;
        auto items = weir::from_callback<hostile>(
            2, policy, [&](weir::emitter<hostile> e) { out.emplace(e); });
        auto first = co_await items.next_for(1ms);
        EXPECT_TRUE(first.timed_out());
        act = [&] { (void)out->emit(hostile(9)); };
        for (int i = 0; i < 5; ++i) (void)out->emit(hostile(i, &act));
        auto one = co_await items.next();
        for (int i = 0; i < 5; ++i) (void)out->emit(hostile(i, &act));
        act = [&] { out->close(); };
        auto two = co_await items.next();
        act = nullptr;
      }
    });
    EXPECT_EQ(hostile::alive, 0);
  }
}
