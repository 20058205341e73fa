// SPDX-License-Identifier: MIT
// topic: one message to many agents; and weir::emit, an agent as a hot source.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

class reader {
 public:
  reader(text_log* log, std::string name) : log_(log), name_(std::move(name)) {}
  void read(const std::string& text) { log_->push_back(name_ + ":" + text); }
  task<> read_slowly(std::string text) {
    co_await weir::sleep(5ms);
    log_->push_back(name_ + ":" + text);
  }
  task<> nap(weir::duration d) { co_await weir::sleep(d); }

 private:
  text_log* log_;
  std::string name_;
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(topic, reaches_every_subscriber_once_and_in_order) {
  text_log log;
  weir::topic<std::string> news("news");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<reader>(s, {.name = "a"}, &log, "a");
    auto b = weir::spawn_agent<reader>(s, {.name = "b"}, &log, "b");
    EXPECT_EQ(news.publish("nobody hears"), 0U);
    news.subscribe(a, &reader::read);
    EXPECT_EQ(news.publish("1"), 1U);
    news.subscribe(b, &reader::read_slowly);
    EXPECT_EQ(news.publish("2"), 2U);
    EXPECT_EQ(news.publish("3"), 2U);
    co_await weir::sleep(20ms);
    std::sort(log.begin(), log.end());
    EXPECT_EQ(joined(log), "a:1,a:2,a:3,b:2,b:3");
  });
}

FIBER_TEST_IN_EVERY_ORDER(topic, who_unsubscribed_hears_nothing_more_and_others_go_on) {
  text_log log;
  weir::topic<std::string> news("news");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<reader>(s, {}, &log, "a");
    auto b = weir::spawn_agent<reader>(s, {}, &log, "b");
    news.subscribe(a, &reader::read);
    news.subscribe(b, &reader::read);
    news.unsubscribe(a);
    news.unsubscribe(a);
    EXPECT_EQ(news.publish("1"), 1U);
    news.subscribe(a, &reader::read);
    news.unsubscribe(b);
    EXPECT_EQ(news.publish("2"), 1U);
    co_await settled();
    std::sort(log.begin(), log.end());
    EXPECT_EQ(joined(log), "a:2,b:1");
  });
}

FIBER_TEST_IN_EVERY_ORDER(topic, an_agent_that_ended_is_no_subscriber_any_more) {
  text_log log;
  weir::topic<std::string> news("news");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<reader>(s, {}, &log, "a");
    auto b = weir::spawn_agent<reader>(s, {}, &log, "b");
    news.subscribe(a, &reader::read);
    news.subscribe(b, &reader::read);
    co_await a.stop();
    EXPECT_EQ(news.publish("1"), 1U);
    news.subscribe(a, &reader::read);  // too late
    EXPECT_EQ(news.publish("2"), 1U);
    co_await settled();
  });
  EXPECT_EQ(joined(log), "b:1,b:2");
  EXPECT_EQ(news.publish("3"), 0U);
}

FIBER_TEST_IN_EVERY_ORDER(topic, counts_only_what_was_enqueued) {
  text_log log;
  weir::topic<std::string> news("news");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<reader>(s, {.name = "a", .capacity = 1}, &log, "a");
    auto b = weir::spawn_agent<reader>(s, {.name = "b"}, &log, "b");
    news.subscribe(a, &reader::read);
    news.subscribe(b, &reader::read);
    a.cast(&reader::nap, 5ms);
    co_await settled();
    EXPECT_EQ(news.publish("1"), 2U);
    EXPECT_EQ(news.publish("2"), 1U);
  });
  std::sort(log.begin(), log.end());
  EXPECT_EQ(joined(log), "a:1,b:1,b:2");
}

FIBER_TEST_IN_EVERY_ORDER(topic, reaches_agents_on_other_loops) {
  text_log log;
  weir::topic<std::string> news("news");
  co_await weir::with_scope([&](weir::scope& outer) -> task<> {
    const weir::loop_thread t(outer, {.name = "there"});
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<reader>(s, {.name = "a", .on = t}, &log, "a");
      news.subscribe(a, &reader::read);
      EXPECT_EQ(news.publish("1"), 1U);
      EXPECT_EQ(news.publish("2"), 1U);
      co_await settled();
    });
  });
  EXPECT_EQ(joined(log), "a:1,a:2");
}

FIBER_TEST_IN_EVERY_ORDER(topic, belongs_to_its_loop) {
  weir::topic<int> ticks("ticks");
  EXPECT_EQ(ticks.publish(1), 0U);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    const weir::loop_thread t(s, {.name = "there"});
    auto elsewhere = [&]() -> task<std::error_code> {
      co_return code_thrown_by([&] { return ticks.publish(2); });
    };
    EXPECT_EQ(co_await weir::on(t, elsewhere), errc::wrong_loop);
  });
}

TEST(topic, may_be_used_by_the_handlers_it_feeds) {
  class echo {
   public:
    echo(weir::topic<int>* to, numbers* heard) : to_(to), heard_(heard) {}
    void hear(int n) {
      heard_->push_back(n);
      if (n > 0) to_->publish(n - 1);
      if (n == 0) to_->unsubscribe(weir::self<echo>());
    }

   private:
    weir::topic<int>* to_;
    numbers* heard_;
  };
  in_every_order([]() -> task<> {
    numbers heard;
    weir::topic<int> t("t");
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto e = weir::spawn_agent<echo>(s, {}, &t, &heard);
      t.subscribe(e, &echo::hear);
      EXPECT_EQ(t.publish(3), 1U);
      co_await settled();
      EXPECT_EQ(t.publish(7), 0U);
    });
    EXPECT_EQ(heard, (numbers{3, 2, 1, 0}));
  });
}

// ------------------------------------------------------------------ emit

namespace {

class source {
 public:
  explicit source(weir::broadcast<int>* out) : out_(out) {}
  weir::emit_result put(int n) { return weir::emit(*out_, n); }

 private:
  weir::broadcast<int>* out_;
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(emit, in_a_handler_makes_the_agent_a_hot_source) {
  weir::broadcast<int> out(8);
  auto sub = out.subscribe();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<source>(s, {.name = "a"}, &out);
    for (int i = 1; i <= 3; ++i) a.cast(&source::put, i);
    EXPECT_EQ(co_await a.call(&source::put, 4), weir::emit_result::delivered);
  });
  numbers got;
  out.close();
  co_await take_all(sub, got);
  EXPECT_EQ(got, from_to(1, 4));
}

TEST(emit, says_what_try_emit_says_when_there_is_no_room) {
  in_every_order([]() -> task<> {
    weir::broadcast<int> out(1);
    auto waits = out.subscribe();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<source>(s, {.name = "a"}, &out);
      EXPECT_EQ(co_await a.call(&source::put, 1), weir::emit_result::delivered);
      EXPECT_EQ(co_await a.call(&source::put, 2), weir::emit_result::refused);
    });
    const auto first = co_await waits.next();
    EXPECT_EQ(first, 1);
  });
  in_every_order([]() -> task<> {
    weir::broadcast<int> out(1);
    auto latest = out.subscribe({.overflow = weir::overflow::drop_oldest});
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<source>(s, {.name = "a"}, &out);
      EXPECT_EQ(co_await a.call(&source::put, 1), weir::emit_result::delivered);
      EXPECT_EQ(co_await a.call(&source::put, 2), weir::emit_result::dropped);
      EXPECT_EQ(a.info().dropped, 1U);
    });
    const auto last = co_await latest.next();
    EXPECT_EQ(last, 2);
  });
}
