// SPDX-License-Identifier: MIT
// Queues, channels, oneshots, events, latches and mutexes in the wrong place or at the wrong time,
// where they live, and what a dump says about who waits for them.
#include <functional>
#include <memory>
#include <optional>

#include "flow_support.hpp"

using namespace weir_test;

namespace {

constexpr auto wrong_loop = errc::wrong_loop;

/// One of each, with a name.
struct things {
  weir::queue<int> queue{1, {.name = "orders"}};
  weir::event event{"all clear"};
  weir::latch latch{1, "landing"};
  weir::mutex mutex{"accounts"};
  weir::oneshot<int> oneshot;
  weir::sender<int> tx;
  weir::receiver<int> rx;

  things() {
    auto [to, from] = weir::channel<int>(1, {.name = "pipe"});
    tx = std::move(to);
    rx = std::move(from);
  }
};

using call_table = std::vector<std::pair<const char*, std::function<void()>>>;

/// Every call that has a home.
call_table calls_of(things& t) {
  call_table all;
  auto add = [&](const char* name, std::function<void()> call) { all.emplace_back(name, call); };
  add("try_push", [&] { (void)t.queue.try_push(1); });
  add("push", [&] { (void)t.queue.push(1); });
  add("next", [&] { (void)t.queue.next(); });
  add("try_next", [&] { (void)t.queue.try_next(); });
  add("close", [&] { t.queue.close(); });
  add("discard", [&] { t.queue.discard(); });
  add("fail", [&] { t.queue.fail(std::make_exception_ptr(boom(1))); });
  add("set", [&] { t.event.set(); });
  add("reset", [&] { t.event.reset(); });
  add("wait of event", [&] { (void)t.event.wait(); });
  add("count_down", [&] { t.latch.count_down(); });
  add("wait of latch", [&] { (void)t.latch.wait(); });
  add("lock", [&] { (void)t.mutex.lock(); });
  add("try_lock", [&] { (void)t.mutex.try_lock(); });
  add("send of oneshot", [&] { (void)t.oneshot.send(1); });
  add("fail of oneshot", [&] { (void)t.oneshot.fail(std::make_exception_ptr(boom(1))); });
  add("receive", [&] { (void)t.oneshot.receive(); });
  add("next of receiver", [&] { (void)t.rx.next(); });
  add("try_next of receiver", [&] { (void)t.rx.try_next(); });
  add("close of receiver", [&] { t.rx.close(); });
  return all;
}

task<> expect_wrong_loop(things& t) {
  for (auto& [name, call] : calls_of(t)) EXPECT_EQ(code_thrown_by(call), wrong_loop) << name;
  co_return;
}

/// Uses each thing in a way that waits and ends.
task<> use_all_of(things& t) {
  EXPECT_EQ(t.queue.try_push(1), no_error);
  EXPECT_EQ(co_await take_one(t.queue), 1);
  t.event.set();
  co_await t.event.wait();
  t.event.reset();
  {
    weir::mutex_guard held = co_await t.mutex.lock();
  }
  (void)t.oneshot.send(1);
  const int& sent = co_await t.oneshot.receive();
  EXPECT_EQ(sent, 1);
  co_await t.tx.send(5);
  EXPECT_EQ(co_await take_one(t.rx), 5);
}

}  // namespace

TEST(flow_misuse, a_negative_capacity_is_refused_and_0_for_a_channel_too) {
  const auto refused = errc::invalid_argument;
  EXPECT_EQ(code_thrown_by([] { weir::queue<int> q(-1); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::channel<int>(0); }), refused);
  EXPECT_EQ(code_thrown_by([] { (void)weir::channel<int>(-5); }), refused);
  const auto error = thrown_by([] { weir::queue<int> q(-3, {.name = "orders"}); });
  EXPECT_TRUE(contains(what_of(error), "orders") && contains(what_of(error), "-3"))
      << what_of(error);
}

TEST(flow_misuse, options_are_trivially_destructible_aggregates) {
  static_assert(std::is_aggregate_v<weir::queue_options>);
  static_assert(std::is_aggregate_v<weir::channel_options>);
  EXPECT_TRUE(std::is_trivially_destructible_v<weir::queue_options>);
  EXPECT_TRUE(std::is_trivially_destructible_v<weir::channel_options>);
}

FIBER_TEST(flow_misuse, the_error_of_a_closed_queue_names_it) {
  weir::queue<int> q(1, {.name = "orders"});
  q.close();
  const std::exception_ptr error = co_await error_of(q.push(1));
  EXPECT_EQ(code_of(error), errc::queue_closed);
  EXPECT_TRUE(contains(what_of(error), "'orders'")) << what_of(error);
  auto [tx, rx] = weir::channel<int>(1, {.name = "pipe"});
  tx.close();
  const std::exception_ptr other = co_await error_of(tx.send(1));
  EXPECT_EQ(code_of(other), errc::queue_closed);
  EXPECT_TRUE(contains(what_of(other), "'pipe'")) << what_of(other);
}

FIBER_TEST(flow_misuse, a_receiver_that_was_moved_from_is_refused) {
  auto [tx, rx] = weir::channel<int>(1);
  auto other = std::move(rx);
  EXPECT_EQ(code_thrown_by([&, &from = rx] { (void)from.next(); }), errc::invalid_argument);
  EXPECT_EQ(code_thrown_by([&, &from = rx] { from.close(); }), errc::invalid_argument);
  co_return;
}

// ------------------------------------------------------------------ home

TEST(flow_misuse, on_another_loop_every_call_is_refused_and_changes_nothing) {
  weir::sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    things t;
    co_await weir::on(w.loop("a"), expect_wrong_loop(t));
    co_await use_all_of(t);
    EXPECT_EQ(t.latch.count(), 1);
    EXPECT_FALSE(t.queue.closed());
    t.rx = weir::receiver<int>();
  });
}

/// Awaits an operation that was made elsewhere: `on` refuses to compile with such a wait itself.
template <class Op>
task<> carried(Op op) {
  static_cast<void>(co_await std::move(op));
}

TEST(flow_misuse, a_wait_that_is_awaited_on_another_loop_than_it_was_made_on_is_refused) {
  weir::sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    things t;
    const weir::loop_ref a = w.loop("a");
    const auto next = co_await error_of(weir::on(a, carried(t.queue.next())));
    const auto push = co_await error_of(weir::on(a, carried(t.queue.push(1))));
    const auto event = co_await error_of(weir::on(a, carried(t.event.wait())));
    const auto latch = co_await error_of(weir::on(a, carried(t.latch.wait())));
    const auto lock = co_await error_of(weir::on(a, carried(t.mutex.lock())));
    const auto from = co_await error_of(weir::on(a, carried(t.rx.next())));
    const auto raced =
        co_await error_of(weir::on(a, carried(weir::race(t.queue.next(), weir::sleep(1ms)))));
    for (const auto& error : {next, push, event, latch, lock, from, raced})
      EXPECT_EQ(code_of(error), wrong_loop) << what_of(error);
    EXPECT_EQ(t.queue.size(), 0U);
    EXPECT_FALSE(t.mutex.locked());
    co_await weir::on(a, t.tx.send(1));  // a sender may be anywhere
    EXPECT_EQ(co_await take_one(t.rx), 1);
  });
}

TEST(flow_misuse, made_outside_a_loop_they_live_on_the_first_that_uses_them) {
  things t;
  weir::sim::world w({.seed = 1});
  w.run([&]() -> task<> {
    co_await weir::on(w.loop("a"), use_all_of(t));
    co_await weir::on(w.loop("a"), use_all_of(t));
    for (auto& [name, call] : calls_of(t)) {
      if (std::string_view(name) == "count_down" || std::string_view(name) == "wait of latch")
        continue;  // not used over there
      EXPECT_EQ(code_thrown_by(call), wrong_loop) << name;
    }
  });
}

TEST(flow_misuse, what_was_put_in_outside_of_loops_arrives_inside) {
  weir::queue<int> q(3);
  auto channel = weir::channel<int>(3);
  EXPECT_EQ(q.try_push(1), no_error);
  EXPECT_EQ(channel.first.try_send(2), no_error);
  in_order([&]() -> task<> {
    EXPECT_EQ(co_await take_one(q), 1);
    EXPECT_EQ(co_await take_one(channel.second), 2);
  });
}

TEST(flow_misuse, when_its_loop_has_ended_the_home_passes_to_the_next_loop) {
  std::optional<things> t;
  in_order([&]() -> task<> {
    t.emplace();
    co_await use_all_of(*t);
  });
  for (int i = 0; i < 3; ++i) in_order([&] { return use_all_of(*t); });
  weir::run(use_all_of(*t));
}

TEST(flow_misuse, a_receiver_that_had_waited_in_vain_is_woken_on_its_next_loop) {
  for (int how = 0; how < 2; ++how) {
    auto [tx, rx] = weir::channel<int>(4);
    auto waits_in_vain = [&, &from = rx]() -> task<> {
      const std::exception_ptr late = co_await error_of(weir::with_timeout(1ms, from.next()));
      EXPECT_TRUE(holds<weir::timeout_error>(late));
    };
    auto waits = [&, &from = rx, &to = tx]() -> task<> {
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        s.spawn([&]() -> task<> {
          co_await weir::sleep(1ms);
          EXPECT_EQ(to.try_send(7), no_error);
        });
        auto got = co_await weir::with_timeout(1s, from.next());
        EXPECT_EQ(got, 7);
      });
    };
    in_order(waits_in_vain);
    if (how == 1) {
      EXPECT_EQ(tx.try_send(6), no_error);  // calls a loop that is gone
      EXPECT_EQ(rx.try_next(), 6);
    }
    in_order(waits);
  }
}

// ------------------------------------------------------------------ destroyed too early

namespace {

/// Destroys a thing while a fiber called "waiter" is parked on it.
template <class T, class Park>
void destroy_under(std::unique_ptr<T> made, Park park) {
  in_order([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto waiter = [&]() -> task<> { co_await park(*made); };
      s.spawn(waiter, {.name = "waiter"});
      co_await settled();
      made.reset();
    });
  });
}

using named_queue = weir::queue<int>;

std::unique_ptr<named_queue> make_queue(std::int64_t capacity) {
  return std::make_unique<named_queue>(capacity, weir::queue_options{.name = "orders"});
}

}  // namespace

TEST(flow_misuse_DeathTest, destroying_a_queue_under_a_consumer_aborts_with_both_names) {
  auto park = [](named_queue& q) -> task<> { (void)co_await q.next(); };
  EXPECT_DEATH(destroy_under(make_queue(1), park), "orders.*waiter");
}

TEST(flow_misuse_DeathTest, destroying_a_queue_under_a_producer_aborts_with_both_names) {
  auto park = [](named_queue& q) -> task<> { co_await q.push(1); };
  EXPECT_DEATH(destroy_under(make_queue(0), park), "orders.*waiter");
}

TEST(flow_misuse_DeathTest, destroying_an_event_under_a_waiter_aborts_with_both_names) {
  auto park = [](weir::event& e) -> task<> { co_await e.wait(); };
  EXPECT_DEATH(destroy_under(std::make_unique<weir::event>("all clear"), park),
               "all clear.*waiter");
}

TEST(flow_misuse_DeathTest, destroying_a_latch_under_a_waiter_aborts_with_both_names) {
  auto park = [](weir::latch& l) -> task<> { co_await l.wait(); };
  EXPECT_DEATH(destroy_under(std::make_unique<weir::latch>(1, "landing"), park), "landing.*waiter");
}

TEST(flow_misuse_DeathTest, destroying_a_mutex_under_a_waiter_aborts_with_both_names) {
  auto park = [](weir::mutex& m) -> task<> {
    auto first = co_await m.lock();
    auto second = co_await m.lock();
  };
  EXPECT_DEATH(destroy_under(std::make_unique<weir::mutex>("accounts"), park), "accounts.*waiter");
}

TEST(flow_misuse_DeathTest, destroying_a_mutex_that_is_locked_aborts_with_its_name) {
  auto hold = [](weir::mutex& m) -> task<> {
    auto held = co_await m.lock();
    co_await weir::sleep(1h);
  };
  EXPECT_DEATH(destroy_under(std::make_unique<weir::mutex>("accounts"), hold), "accounts");
}

TEST(flow_misuse_DeathTest, destroying_a_receiver_under_a_consumer_aborts_with_both_names) {
  auto park = [](weir::receiver<int>& from) -> task<> { (void)co_await from.next(); };
  auto made = weir::channel<int>(1, {.name = "pipe"});
  auto moved = [&] { return std::make_unique<weir::receiver<int>>(std::move(made.second)); };
  EXPECT_DEATH(destroy_under(moved(), park), "pipe.*waiter");
}

// ------------------------------------------------------------------ dumps
FIBER_TEST(flow_misuse, a_dump_names_what_each_fiber_waits_for_also_at_capacity_0) {
  things t;
  weir::queue<int> meeting(0, {.name = "meeting"});
  auto held = co_await t.mutex.lock();
  co_await t.tx.send(0);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn([&]() -> task<> { (void)co_await t.queue.next(); }, {.name = "consumer"});
    s.spawn([&]() -> task<> { co_await meeting.push(1); }, {.name = "producer"});
    s.spawn([&]() -> task<> { co_await t.event.wait(); }, {.name = "watcher"});
    s.spawn([&]() -> task<> { co_await t.latch.wait(); }, {.name = "lander"});
    s.spawn([&]() -> task<> { auto own = co_await t.mutex.lock(); }, {.name = "locker"});
    s.spawn([&]() -> task<> { co_await t.tx.send(1); }, {.name = "sender"});
    s.spawn([&]() -> task<> { (void)co_await t.oneshot.receive(); }, {.name = "reader"});
    co_await settled();
    const std::string text = dump_text();
    const std::pair<const char*, const char*> expected[] = {{"consumer", "queue 'orders'"},
                                                            {"producer", "queue 'meeting'"},
                                                            {"watcher", "event 'all clear'"},
                                                            {"lander", "latch 'landing'"},
                                                            {"locker", "mutex 'accounts'"},
                                                            {"sender", "channel 'pipe'"},
                                                            {"reader", "oneshot"}};
    for (const auto& [fiber, thing] : expected) {
      const auto at = text.find("fiber '" + std::string(fiber) + "'");
      EXPECT_NE(at, std::string::npos) << fiber << " is not in\n" << text;
      if (at == std::string::npos) continue;
      const std::string line = text.substr(at, text.find('\n', at) - at);
      EXPECT_TRUE(contains(line, thing)) << thing << " is not in\n" << line;
    }
    s.cancel();
  });
}

FIBER_TEST_IN_EVERY_ORDER(flow_misuse, a_dump_at_any_moment_of_a_wait_is_possible) {
  things t;
  int dumps = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto sends = [&]() -> task<> {
      for (int i = 0; i < 2; ++i) co_await t.tx.send(i);
    };
    auto pushes = [&]() -> task<> {
      for (int i = 0; i < 2; ++i) co_await t.queue.push(i);
    };
    s.spawn(sends);
    s.spawn(pushes);
    for (int i = 0; i < 2; ++i) {
      dumps += dump_text().empty() ? 0 : 1;
      (void)co_await weir::race(t.rx.next(), weir::sleep(1ms));
      (void)co_await weir::race(t.queue.next(), t.event.wait(), weir::sleep(1ms));
    }
    co_await s.join();
  });
  EXPECT_EQ(dumps, 2);
}
