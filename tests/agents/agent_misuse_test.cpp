// SPDX-License-Identifier: MIT
// Agents used wrongly or in unusual places: null handlers, names that cannot be registered,
// messages from destructors and from dead worlds.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

/// Casts when it is destroyed.
class last_words {
 public:
  last_words(agent_ref<counter> to, sent& answer) : to_(std::move(to)), answer_(answer) {}
  last_words(const last_words&) = delete;
  last_words& operator=(const last_words&) = delete;
  ~last_words() { answer_ = to_.cast(&counter::inc, 1); }

 private:
  agent_ref<counter> to_;
  sent& answer_;
};

task<> sleep_and_cast(agent_ref<counter> to, sent& answer) {
  const last_words at_the_end(to, answer);
  co_await weir::sleep(1000h);
}

template <class F>
std::error_code code_of_add(const F& ref) {
  return code_thrown_by([&] { return (weir::registry::add(ref), 0); });
}

}  // namespace

SCOPE_TEST(agent_misuse, a_null_handler_is_an_empty_job) {
  auto c = weir::spawn_agent<counter>(s, {.name = "c"}, 3);
  int (counter::*none)() const = nullptr;
  EXPECT_EQ(code_thrown_by([&] { return c.cast(none); }), errc::empty_job);
  EXPECT_EQ(code_thrown_by([&] { return c.cast_after(1ms, none); }), errc::empty_job);
  auto calls = [&] { return c.call(none); };
  EXPECT_EQ(code_of(co_await attempt(calls)), errc::empty_job);
  auto sends = [&] { return c.send(none); };
  EXPECT_EQ(code_of(co_await attempt(sends)), errc::empty_job);
  EXPECT_EQ(co_await c.call(&counter::get), 3);
}

SCOPE_TEST_IN_EVERY_ORDER(agent_misuse, an_agent_may_be_put_on_the_loop_it_would_be_on_anyway) {
  auto c = weir::spawn_agent<counter>(s, {.name = "c", .on = weir::this_loop()}, 3);
  c.cast(&counter::inc, 1);
  EXPECT_EQ(co_await c.call(&counter::get), 4);
  co_await c.stop();
}

SCOPE_TEST_IN_EVERY_ORDER(agent_misuse,
                          a_name_that_is_empty_or_of_an_ended_agent_is_not_registered) {
  auto nameless = weir::spawn_agent<counter>(s, {});
  EXPECT_EQ(code_of_add(nameless), errc::invalid_argument);
  auto c = weir::spawn_agent<counter>(s, {.name = "till"});
  EXPECT_EQ(code_of_add(c), std::error_code());
  EXPECT_EQ(code_of_add(c), std::error_code());  // again
  EXPECT_TRUE(weir::registry::remove(c));
  EXPECT_FALSE(weir::registry::remove(c));
  EXPECT_FALSE(weir::registry::find<counter>("till").has_value());
  co_await c.stop();
  EXPECT_EQ(code_of_add(c), errc::agent_stopped);
}

FIBER_TEST_IN_EVERY_ORDER(agent_misuse,
                          emit_outside_of_an_agent_is_try_emit_and_what_is_dropped_is_an_event) {
  int dropped = 0;
  const auto watch = count_events("emit_dropped", "emit", dropped);
  weir::broadcast<int> out(1);
  auto sub = out.subscribe();
  EXPECT_EQ(weir::emit(out, 1), weir::emit_result::delivered);
  EXPECT_EQ(weir::emit(out, 2), weir::emit_result::refused);
  EXPECT_EQ(dropped, 1);
  const auto first = co_await sub.next();
  EXPECT_EQ(first, 1);
}

// ------------------------------------------------------------------ the ends of others

FIBER_TEST_IN_EVERY_ORDER(agent_misuse, a_destructor_of_a_cancelled_fiber_may_cast) {
  sent answer = sent::full;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {.name = "c"});
    auto child = s.spawn(sleep_and_cast(c, answer));
    co_await settled();
    child.cancel();
    co_await weir::settle(child);
    EXPECT_EQ(answer, sent::enqueued);
    EXPECT_EQ(co_await c.call(&counter::get), 1);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_misuse, a_destructor_in_a_dead_world_reaches_nobody) {
  sent answer = sent::enqueued;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<counter>(s, {.name = "c"});
    auto child = s.spawn(weir::settle(weir::on(w.loop("a"), sleep_and_cast(c, answer))));
    co_await settled();
    w.crash("a");
    co_await child;
    EXPECT_NE(answer, sent::enqueued);
    EXPECT_EQ(co_await c.call(&counter::get), 0);
  });
}

TEST(agent_misuse, the_grace_also_ends_what_a_handler_shields) {
  struct stubborn {
    task<> work(bool* unwound) {
      const auto guard = weir::scope_exit([unwound] { *unwound = true; });
      co_await weir::shield(weir::sleep(1000h));
    }
  };
  in_every_order([]() -> task<> {
    bool unwound = false;
    const auto start = weir::now();
    co_await weir::with_scope(grace_of(50ms), [&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<stubborn>(s, {});
      a.cast(&stubborn::work, &unwound);
      co_await settled();
    });
    EXPECT_TRUE(unwound);
    EXPECT_EQ(ms_since(start), 51);
  });
}

// ------------------------------------------------------------------ the own scope

TEST(agent_misuse, a_stop_waits_for_the_children_and_defers_of_the_own_scope) {
  class host {
   public:
    host(weir::scope& own, text_log* log) : log_(log) {
      own.defer([this]() -> task<> {
        co_await weir::sleep(5ms);
        log_->push_back("deferred");
      });
      own.spawn([this]() -> task<> {
        co_await weir::sleep(10ms);
        log_->push_back("child");
      });
    }
    host(const host&) = delete;
    host& operator=(const host&) = delete;
    ~host() { log_->push_back("-host"); }
    void note() { log_->push_back("note"); }

   private:
    text_log* log_;
  };
  in_every_order([]() -> task<> {
    text_log log;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto h = weir::spawn_agent<host>(s, {.name = "h"}, &log);
      h.cast(&host::note);
      const auto start = weir::now();
      co_await h.stop();
      EXPECT_EQ(ms_since(start), 15);
      EXPECT_EQ(joined(log), "note,child,deferred,-host");
      EXPECT_EQ(h.info().state, agent_state::ended);
    });
  });
}
