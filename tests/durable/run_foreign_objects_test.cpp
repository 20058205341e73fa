// SPDX-License-Identifier: MIT
// Objects that any thread may use, made outside of a durable run: the run may not use them, they
// are not changed, and the error says where.
#include "durable/foreign_objects_support.hpp"

using namespace weir_test;

namespace {

// Both in this file, because the refusal names the coroutine that it happens in.

template <class F>
std::string called_foreign(F f) {
  return refusal(thrown_by(f), "run_foreign_objects_test.cpp:");
}

template <class F>
task<std::string> awaited_foreign(F f) {
  std::exception_ptr error;
  try {
    (void)co_await f();
  } catch (...) {
    error = std::current_exception();
  }
  co_return refusal(error, "run_foreign_objects_test.cpp:");
}

std::string all_refused(std::size_t n) { return joined(text_log(n, "refused")); }

class counter {
 public:
  void inc() { ++count_; }
  int get() const { return count_; }

 private:
  int count_ = 0;
};

}  // namespace

TEST(durable_foreign, loops_cannot_be_posted_to_or_asked_for) {
  simulated([]() -> task<> {
    const weir::loop_ref here = weir::this_loop();
    int posted = 0;
    auto handler = [&]() -> task<std::string> {
      text_log all;
      all.push_back(called_foreign([&] { return here.post([&] { ++posted; }); }));
      all.push_back(called_foreign([&] { return here.alive(); }));
      all.push_back(called_foreign([&] { return here.keep_alive(); }));
      all.push_back(called_foreign([] { return weir::this_loop(); }));
      co_await weir::step("post", [&] { return here.post([&] { ++posted; }); });
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(4));
    EXPECT_EQ(posted, 1);
  });
}

TEST(durable_foreign, tokens_can_neither_be_asked_nor_fired_nor_waited_for) {
  simulated([]() -> task<> {
    weir::cancel_source source;
    const weir::cancel_token token = source.token();
    std::stop_source stop;
    int begun = 0;
    auto handler = [&]() -> task<std::string> {
      text_log all;
      auto work = [&]() -> task<> {
        ++begun;
        co_return;
      };
      all.push_back(called_foreign([&] { return source.cancel_requested(); }));
      all.push_back(called_foreign([&] { return token.cancel_requested(); }));
      all.push_back(called_foreign([&] { return source.cancel("no"), 0; }));
      all.push_back(called_foreign([&] { return weir::link(stop.get_token()); }));
      all.push_back(co_await awaited_foreign([&] { return weir::with_token(token, work); }));
      co_await weir::with_token(weir::cancel_token(), work);  // one that never fires is nobody's
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(5));
    EXPECT_FALSE(source.cancel_requested());
    EXPECT_EQ(begun, 1);
  });
}

TEST(durable_foreign, callbacks_are_neither_waited_for_nor_answered) {
  simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      int begun = 0;
      weir::resumer<int> outside;
      auto waits = s.spawn([&]() -> task<int> {
        co_return co_await weir::suspend<int>(
            [&](weir::resumer<int> r) { outside = std::move(r); });
      });
      co_await weir::sleep(1ms);
      auto handler = [&]() -> task<std::string> {
        text_log all;
        all.push_back(called_foreign([&] { return outside.complete(1), 0; }));
        all.push_back(called_foreign([&] { return outside.fail(nullptr), 0; }));
        auto suspends = [&] {
          return weir::suspend<int>([&](weir::resumer<int> r) {
            ++begun;
            r.complete(1);
          });
        };
        all.push_back(co_await awaited_foreign(suspends));
        co_await weir::step("answer", [&] { outside.complete(2); });
        co_return joined(all);
      };
      EXPECT_EQ(co_await result_of(handler), all_refused(3));
      EXPECT_EQ(co_await waits, 2);
      EXPECT_EQ(begun, 0);
    });
  });
}

TEST(durable_foreign, nothing_runs_on_other_threads_or_loops) {
  weir::sim::world w({.seed = 1});
  int ran = 0;
  (void)w.run([&]() -> task<> {
    auto handler = [&](weir::scope& s) -> task<std::string> {
      text_log all;
      auto work = [&]() -> task<> {
        ++ran;
        co_return;
      };
      all.push_back(co_await awaited_foreign([&] { return weir::blocking([&] { ++ran; }); }));
      all.push_back(co_await awaited_foreign([&] { return weir::on(w.loop("other"), work); }));
      all.push_back(called_foreign([&] { return s.spawn_on(w.loop("other"), work); }));
      all.push_back(called_foreign([&] { return weir::loop_thread(s, {.name = "t"}).ref(); }));
      all.push_back(called_foreign([&] { return weir::runtime(s, {.threads = 2}).any(); }));
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(5));
  });
  EXPECT_EQ(ran, 0);
}

TEST(durable_foreign, pools_take_no_job) {
  simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::pool outside(s, {.name = "outside", .workers = 1});
      int ran = 0;
      auto handler = [&](weir::scope& mine) -> task<std::string> {
        text_log all;
        auto job = [&] { return ++ran; };
        all.push_back(called_foreign([&] { return outside.try_submit(job); }));
        all.push_back(co_await awaited_foreign([&] { return outside.submit(job); }));
        all.push_back(co_await awaited_foreign([&] { return outside.submit_for(1s, job); }));
        all.push_back(co_await awaited_foreign([&] { return outside.run(job); }));
        all.push_back(co_await awaited_foreign([&] { return outside.close(); }));
        all.push_back(called_foreign([&] { return outside.cancel(), 0; }));
        all.push_back(called_foreign([&] { return outside.closed(); }));
        all.push_back(called_foreign([&] { return weir::pool(mine).closed(); }));
        auto in_step = [&]() -> task<int> { co_return co_await outside.run(job); };
        EXPECT_EQ(co_await weir::step("job", in_step), 1);
        co_return joined(all);
      };
      EXPECT_EQ(co_await result_of(handler), all_refused(8));
      EXPECT_EQ(ran, 1);
      EXPECT_FALSE(outside.closed());
      co_await outside.close();
    });
  });
}

TEST(durable_foreign, channels_carry_nothing_into_a_run_or_out_of_it) {
  simulated([]() -> task<> {
    auto ends = weir::channel<int>(2, {.name = "outside"});
    auto& to = ends.first;
    auto& from = ends.second;
    EXPECT_TRUE(!to.try_send(1));
    auto handler = [&]() -> task<std::string> {
      text_log all;
      all.push_back(called_foreign([&] { return to.try_send(2); }));
      all.push_back(co_await awaited_foreign([&] { return to.send(3); }));
      all.push_back(called_foreign([&] { return to.close(), 0; }));
      all.push_back(called_foreign([&] { return to.closed(); }));
      all.push_back(called_foreign([&] { return from.try_next(); }));
      all.push_back(co_await awaited_foreign([&] { return from.next(); }));
      all.push_back(called_foreign([&] { return from.close(), 0; }));
      all.push_back(called_foreign([] { return weir::channel<int>(1); }));
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(8));
    EXPECT_FALSE(to.closed());
    EXPECT_EQ(co_await from.next(), 1);
    EXPECT_EQ(from.try_next(), std::nullopt);
  });
}

TEST(durable_foreign, emitters_and_their_streams_stay_outside) {
  simulated([]() -> task<> {
    std::optional<weir::emitter<int>> outside;
    auto source = weir::from_callback<int>(4, weir::overflow::reject,
                                           [&](weir::emitter<int> e) { outside = std::move(e); });
    auto unused = weir::from_callback<int>(4, weir::overflow::reject,
                                           [](weir::emitter<int> e) { (void)e.emit(1); });
    const auto first = co_await weir::settle(weir::with_timeout(1ms, source.next()));
    EXPECT_FALSE(first.is_value());
    auto handler = [&]() -> task<std::string> {
      text_log all;
      all.push_back(called_foreign([&] { return outside->emit(1); }));
      all.push_back(called_foreign([&] { return outside->close(), 0; }));
      all.push_back(called_foreign([&] { return outside->fail(nullptr), 0; }));
      all.push_back(co_await awaited_foreign([&] { return unused.next(); }));
      all.push_back(called_foreign([] {
        (void)weir::from_callback<int>(4, weir::overflow::reject, [](weir::emitter<int>) {});
        return 0;
      }));
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(5));
    EXPECT_TRUE(outside->emit(7));
    EXPECT_EQ(co_await source.next(), 7);
  });
}

TEST(durable_foreign, agents_hear_nothing_and_are_not_made) {
  simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto agent = weir::spawn_agent<counter>(s, {.name = "outside"});
      auto timer = agent.cast_after(1h, &counter::inc);
      weir::topic<int> news("news");
      auto handler = [&](weir::scope& mine) -> task<std::string> {
        text_log all;
        all.push_back(called_foreign([&] { return agent.cast(&counter::inc); }));
        all.push_back(co_await awaited_foreign([&] { return agent.send(&counter::inc); }));
        all.push_back(co_await awaited_foreign([&] { return agent.call(&counter::get); }));
        all.push_back(called_foreign([&] { return agent.cast_after(1ms, &counter::inc); }));
        all.push_back(called_foreign([&] { return agent.cast_every(1ms, &counter::inc); }));
        all.push_back(called_foreign([&] { return timer.cancel(), 0; }));
        all.push_back(called_foreign([&] { return agent.stop(); }));
        all.push_back(co_await awaited_foreign([&] { return agent.join(); }));
        all.push_back(co_await awaited_foreign([&] { return agent.monitor(); }));
        all.push_back(called_foreign([&] { return agent.info(); }));
        all.push_back(called_foreign([&] { return weir::registry::add(agent), 0; }));
        all.push_back(called_foreign([&] { return weir::registry::find<counter>("outside"); }));
        all.push_back(called_foreign([&] { return weir::registry::remove(agent); }));
        all.push_back(called_foreign([&] { return weir::spawn_agent<counter>(mine, {}); }));
        all.push_back(called_foreign([&] { return weir::agent_pool<counter>(mine, 2, {}); }));
        all.push_back(called_foreign([] { return weir::supervisor(); }));
        all.push_back(called_foreign([&] { return news.publish(1); }));
        co_return joined(all);
      };
      EXPECT_EQ(co_await result_of(handler), all_refused(17));
      EXPECT_EQ(weir::registry::find<counter>("outside"), std::nullopt);
      EXPECT_EQ(co_await agent.call(&counter::get), 0);
      EXPECT_EQ(agent.info().handled, 1U);
      timer.cancel();
    });
  });
}

TEST(durable_foreign, shared_governors_grant_nothing) {
  simulated([]() -> task<> {
    weir::shared_governor g(2, {.name = "outside"});
    int told = 0;
    auto handler = [&]() -> task<std::string> {
      text_log all;
      auto work = []() -> task<> { co_return; };
      all.push_back(called_foreign([&] { return g.try_acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return g.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return g.acquire(3); }));
      all.push_back(co_await awaited_foreign([&] { return g.acquire_for(1s); }));
      all.push_back(co_await awaited_foreign([&] { return g.with(work); }));
      all.push_back(co_await awaited_foreign([&] { return weir::op(work) | weir::bulkhead(g); }));
      all.push_back(co_await awaited_foreign([&] { return weir::race(g.acquire(), g.acquire()); }));
      all.push_back(called_foreign([&] { return g.resize(5), 0; }));
      all.push_back(called_foreign([&] { return g.close(), 0; }));
      all.push_back(called_foreign([&] { return g.on_idle([&] { ++told; }), 0; }));
      all.push_back(called_foreign([&] { return g.available(); }));
      all.push_back(called_foreign([&] { return g.active(); }));
      all.push_back(called_foreign([&] { return g.waiting(); }));
      all.push_back(called_foreign([&] { return g.capacity(); }));
      auto in_step = [&]() -> task<> { const weir::permit held = co_await g.acquire(2); };
      co_await weir::step("acquire", in_step);
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(14));
    EXPECT_EQ(g.available(), 2);
    EXPECT_EQ(g.capacity(), 2);
    EXPECT_EQ(told, 0);
  });
}

TEST(durable_foreign, breakers_and_budgets_let_nothing_through) {
  simulated([]() -> task<> {
    weir::circuit_breaker cb({.name = "outside", .minimum_calls = 1});
    weir::retry_budget budget;
    const auto quantile = weir::hedge({.quantile = 0.5});
    int ran = 0;
    auto handler = [&]() -> task<std::string> {
      text_log all;
      auto work = [&]() -> task<int> {
        ++ran;
        throw boom(1);
        co_return 1;
      };
      const weir::retry_options again{.attempts = 2, .budget = &budget};
      const weir::hedge_options twice{.budget = &budget};
      all.push_back(co_await awaited_foreign([&] { return weir::op(work) | weir::breaker(cb); }));
      all.push_back(called_foreign([&] { return cb.state(); }));
      all.push_back(called_foreign([&] { return cb.isolate(), 0; }));
      all.push_back(called_foreign([&] { return cb.reset(), 0; }));
      all.push_back(co_await awaited_foreign([&] { return weir::op(work) | weir::retry(again); }));
      all.push_back(co_await awaited_foreign([&] { return weir::op(work) | weir::hedge(twice); }));
      all.push_back(co_await awaited_foreign([&] { return weir::op(work) | quantile; }));
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(7));
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(cb.state(), weir::circuit_state::closed);
  });
}

TEST(durable_foreign, objects_with_a_home_are_at_home_outside) {
  simulated([]() -> task<> {
    weir::counting_governor counting(1);
    weir::adaptive_governor adaptive({.initial = 2});
    weir::load_governor load({.max = 1});
    weir::rate_governor rate({.per_second = 1});
    weir::burst_governor burst({.burst_for = 1s});
    weir::partitioned_governor parts(2, {{"a", 1}, {"b", 1}});
    const weir::any_governor any(3);
    const auto bulkhead = weir::bulkhead(1);
    weir::broadcast<int> broadcast(2);
    auto subscription = broadcast.subscribe();
    weir::replay<int> replay(2);
    weir::state<int> state(1);
    weir::queue<int> queue(2);
    weir::oneshot<int> oneshot;
    weir::event event;
    weir::mutex mutex;
    weir::latch latch(1);
    auto handler = [&]() -> task<std::string> {
      text_log all;
      auto work = []() -> task<> { co_return; };
      all.push_back(co_await awaited_foreign([&] { return counting.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return adaptive.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return load.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return rate.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return burst.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return parts.part("a").acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return any.acquire(); }));
      all.push_back(co_await awaited_foreign([&] { return weir::op(work) | bulkhead; }));
      all.push_back(called_foreign([&] { return broadcast.try_emit(1); }));
      all.push_back(co_await awaited_foreign([&] { return subscription.next(); }));
      all.push_back(called_foreign([&] { return replay.subscribe(); }));
      all.push_back(called_foreign([&] { return state.set(2), 0; }));
      all.push_back(called_foreign([&] { return queue.try_push(1); }));
      all.push_back(called_foreign([&] { return oneshot.send(1); }));
      all.push_back(called_foreign([&] { return event.set(), 0; }));
      all.push_back(co_await awaited_foreign([&] { return mutex.lock(); }));
      all.push_back(called_foreign([&] { return latch.count_down(), 0; }));
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(17));
    EXPECT_EQ(queue.size(), 0);
    EXPECT_EQ(counting.active() + adaptive.active() + load.active() + parts.active(), 0);
  });
}

TEST(durable_foreign, events_of_the_loop_are_not_seen) {
  simulated([]() -> task<> {
    auto handler = []() -> task<std::string> {
      text_log all;
      all.push_back(called_foreign([] { return weir::recent_events(); }));
      all.push_back(called_foreign([] { return weir::on_event([](const weir::event_info&) {}); }));
      co_return joined(all);
    };
    EXPECT_EQ(co_await result_of(handler), all_refused(2));
  });
}

TEST(durable_foreign, destructors_of_a_run_that_stops_existing_say_nothing) {
  simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto agent = weir::spawn_agent<counter>(s, {.name = "outside"});
      auto ends = weir::channel<int>(2);
      auto& to = ends.first;
      auto& from = ends.second;
      int destroyed = 0;
      auto handler = [&]() -> task<std::string> {
        auto speak = [&] {
          ++destroyed;
          EXPECT_EQ(agent.cast(&counter::inc), weir::sent::stopped);
          EXPECT_EQ(to.try_send(1), errc::queue_closed);
        };
        const auto last_words = weir::scope_exit(speak);
        co_await weir::sleep(1h);
        co_return "never";
      };
      const temporary_directory place;
      auto use = [&](durable::engine& e) -> task<> {
        (void)co_await e.start<std::string>("h", {.id = "r"});
        co_await weir::sleep(1min);
      };
      co_await life_in(place, handler, use);
      EXPECT_EQ(destroyed, 1);
      EXPECT_EQ(agent.info().handled, 0U);
      EXPECT_EQ(from.try_next(), std::nullopt);
    });
  });
}

TEST(durable_foreign, the_refusal_names_run_object_and_line) {
  simulated([]() -> task<> {
    weir::circuit_breaker cb({.name = "payments"});
    int line = 0;
    auto work = []() -> task<> { co_return; };
    auto breaks = [&]() -> task<std::string> {
      line = __LINE__ + 1;
      co_await (weir::op(work) | weir::breaker(cb));
      co_return "allowed";
    };
    const std::string breaker = what_of(co_await error_of(result_of(breaks)));
    EXPECT_TRUE(contains(breaker, at_line(line))) << breaker;
    EXPECT_TRUE(contains(breaker, "circuit breaker 'payments'")) << breaker;
    EXPECT_TRUE(contains(breaker, "run 'r'")) << breaker;
    auto blocks = [&]() -> task<std::string> {
      line = __LINE__ + 1;
      co_await weir::blocking([] {});
      co_return "allowed";
    };
    const std::string blocking = what_of(co_await error_of(result_of(blocks)));
    EXPECT_TRUE(contains(blocking, at_line(line))) << blocking;
    EXPECT_TRUE(contains(blocking, "run 'r'")) << blocking;
  });
}
