// SPDX-License-Identifier: MIT
// Small programs with the promises of `on`, `blocking`, nested pools, values and functions that
// cross loops, and crashes of loops in them, for sim::explore.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "toolkit/pool_promises.hpp"

namespace pool_promises {

// ------------------------------------------------------------------ crashes

/// A worker that crashes takes at most its own job along; the other one does the rest, and
/// everybody has an answer. If all crash, what is left is told.
inline task<> crashed_workers_keep_nobody_waiting(weir::sim::world& w) {
  job_book b(4, 100, 32);  // crashes end jobs later than the next ones begin
  const bool both = draw(3) == 0;
  const int first = draw(2);
  int lost = 0;
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, shape{2, 2}.options());
    const auto caller = [&](int how) -> task<> {
      const int id = b.open();
      auto job = slow_job(b, id, 1us * draw(3));
      std::exception_ptr error;
      if (how == 0) error = co_await error_of_wait(p.submit(std::move(job)));
      if (how == 1) error = co_await error_of_wait(p.run(std::move(job)));
      if (how == 1) b.caller_left(id, error);
      lost += how == 1 && error ? 1 : 0;
      b.must(!error || error_code(error) == errc::loop_gone, "a lost job is one of a lost loop");
    };
    if (draw(2) == 0) co_await quiet();  // both are idle
    co_await weir::with_scope([&](scope& users) -> task<> {
      for (int i = 0; i < 7; ++i) {
        users.spawn([&caller, how = draw(3) == 0 ? 0 : 1] { return caller(how); });
        if (draw(3) == 0) co_await a_moment();
        if (i == 3) w.crash(first == 0 ? "p-0" : "p-1");
        if (i == 5 && both) w.crash(first == 0 ? "p-1" : "p-0");
      }
      co_await users.join();
    });
    co_await quiet();
    always("a crash takes at most one run along", both || lost <= 1);
    const auto after = co_await error_of_wait(p.run([] { return 1; }));
    always("the pool goes on with one worker", both || !after);
    always("a pool without workers says so", !both || error_code(after) == errc::loop_gone);
    (void)co_await error_of_wait(p.close());
  });
  always("no function of a job is left", b.gone() == b.opened());
  b.check();
}

/// The loop that owns a pool crashes: whoever waits for the pool elsewhere has an answer, and what
/// runs is asked to stop.
inline task<> a_crashed_owner_keeps_nobody_waiting(weir::sim::world& w) {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 16);
  const weir::loop_ref node = w.loop("node");
  weir::pool* shared = nullptr;
  const auto owner = [&]() -> task<> {
    co_await weir::with_pool(size.options(), [&](weir::pool& p) -> task<> {
      shared = &p;
      co_await weir::sleep(1h);
    });
  };
  int answered = 0;
  const auto caller = [&]() -> task<> {
    const int id = b.open();
    auto job = slow_job(b, id, draw(2) == 0 ? weir::duration(1us) : weir::duration(10min));
    const std::exception_ptr error = co_await error_of_wait(shared->run(std::move(job)));
    b.caller_left(id, error);
    ++answered;
  };
  co_await weir::with_scope([&](scope& s) -> task<> {
    auto owning = s.spawn(weir::settle(weir::on(node, owner)));
    while (shared == nullptr) co_await weir::yield();
    for (int i = 0; i < 6; ++i) s.spawn(caller);
    co_await weir::yield();
    co_await a_moment();
    while (b.opened() < 6) co_await weir::yield();
    w.crash("node");
    co_await s.idle();
    always("everybody has an answer", answered == 6);
    co_await quiet();
    always("nothing runs any more", b.running() == 0 && b.gone() == 6);
  });
  b.check();
}

// ------------------------------------------------------------------ nested

/// Jobs of one pool run jobs of another, and are cancelled at any moment.
inline task<> nested_pools_end_in_order() {
  const shape size = any_shape();
  const shape inside = any_shape();
  job_book outer(size.workers, size.places(), 16);
  job_book inner(inside.workers, inside.places(), 16);
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool q(s, inside.options("q"));
    weir::pool p(s, size.options());
    const auto caller = [&]() -> task<> {
      const int id = outer.open();
      const auto left = weir::scope_exit([&] { outer.caller_left(id); });
      auto job = [&inner, &q, t = job_book::token(outer, id)]() -> task<int> {
        const job_book::visit here(t);
        const int mine = inner.open();
        const auto away = weir::scope_exit([&] { inner.caller_left(mine); });
        auto nested = slow_job(inner, mine, 1us * (t.id() % 3));
        const int value = co_await q.run(std::move(nested));
        co_return value == mine ? t.id() : -1;
      };
      const int value = co_await p.run(std::move(job));
      outer.must(value == id, "a run has the value of its own job");
    };
    co_await weir::with_scope([&](scope& users) -> task<> {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 6; ++i) {
        all.push_back(users.spawn(caller));
        if (draw(3) == 0) co_await a_moment();
        if (draw(3) == 0) all[static_cast<std::size_t>(draw(i + 1))].cancel();
      }
      co_await users.join();
    });
    co_await every_place_is_free(q, inside);
    co_await every_place_is_free(p, size);
  });
  always("what had begun has ended", inner.begun() == inner.ended());
  outer.check();
  inner.check();
}

// ------------------------------------------------------------------ values and functions

/// Where things are destroyed, and how many there are.
struct customs {
  weir::loop_ref home;
  int alive = 0;
  bool wrong = false;
  int moves_left = -1;    // the move that throws; none if negative
  bool stranded = false;  // a move has thrown: what was moved ends where it is
  void move() {
    if (moves_left < 0 || moves_left-- != 0) return;
    stranded = true;
    throw job_failed(77);
  }
  void must_be(weir::loop_ref there) { wrong = wrong || (!stranded && weir::this_loop() != there); }
};

/// A value that must end at home, and whose moves may throw.
class cargo {
 public:
  explicit cargo(customs& c) : customs_(&c) { ++c.alive; }
  cargo(cargo&& other) : customs_(other.customs_) {
    customs_->move();
    ++customs_->alive;
    full_ = std::exchange(other.full_, false);
  }
  cargo& operator=(cargo&&) = delete;
  ~cargo() {
    --customs_->alive;
    if (full_) customs_->must_be(customs_->home);
  }
  bool full() const { return full_; }

 private:
  customs* customs_;
  bool full_ = true;
};

/// A function that must end where it was called.
class envoy {
 public:
  explicit envoy(customs& c) : customs_(&c) { ++c.alive; }
  envoy(envoy&& other) : customs_(other.customs_) {
    customs_->move();
    ++customs_->alive;
    full_ = std::exchange(other.full_, false);
  }
  envoy& operator=(envoy&&) = delete;
  ~envoy() {
    --customs_->alive;
    if (full_ && called_) customs_->must_be(there_);
  }
  cargo operator()() {
    called_ = true;
    there_ = weir::this_loop();
    return cargo(*customs_);
  }

 private:
  customs* customs_;
  weir::loop_ref there_;
  bool full_ = true;
  bool called_ = false;
};

/// A value of a job ends at home, the function where it ran, each once; a move that throws is an
/// error of the caller and costs no place.
inline task<> values_end_at_home(weir::sim::world& w) {
  const shape size = any_shape();
  customs c{.home = weir::this_loop()};
  const weir::loop_ref other = w.loop("other");
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    int answers = 0;
    const auto caller = [&](int how) -> task<> {
      envoy fn(c);
      try {
        if (how == 0) {
          const cargo got = co_await p.run(std::move(fn));
          c.wrong = c.wrong || !got.full();
        } else if (how == 1) {
          const cargo got = co_await weir::blocking(std::move(fn));
          c.wrong = c.wrong || !got.full();
        } else {
          auto op = [inside = std::move(fn)]() mutable -> task<cargo> {
            co_await weir::yield();
            co_return inside();
          };
          const cargo got = co_await weir::on(other, std::move(op));
          c.wrong = c.wrong || !got.full();
        }
      } catch (const job_failed& e) {
        c.wrong = c.wrong || e.id != 77;
      }
      ++answers;
    };
    c.moves_left = draw(2) == 0 ? -1 : draw(16);
    for (int i = 0; i < 4; ++i) {
      s.spawn([&caller, how = draw(3)] { return caller(how); });
      if (draw(2) == 0) co_await a_moment();
    }
    co_await s.idle();
    c.moves_left = -1;
    always("every caller has one answer", answers == 4);
    co_await every_place_is_free(p, size);
  });
  always("each value and function ends once", c.alive == 0);
  always("values end at home, functions where they ran", !c.wrong);
}

inline weir::local<int> passport{0};

/// The deadline and the locals of a caller travel with `on` and `run`; a submitted job has neither.
inline task<> deadlines_and_locals_travel(weir::sim::world& w) {
  const weir::loop_ref other = w.loop("other");
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, shape{1, 2}.options());
    const weir::time_point limit = weir::now() + 1s;
    int seen = 0;
    const auto look = [&](weir::context& c) -> task<int> {
      co_await weir::yield();
      ++seen;
      co_return c.deadline() == limit ? passport.get() : -1;
    };
    const auto ask = [&]() -> task<> {
      always("on takes the deadline and the locals along", co_await weir::on(other, look) == 5);
      always("run takes the deadline and the locals along", co_await p.run(look) == 5);
      co_await p.submit([&]() -> task<> {
        ++seen;
        always("a submitted job has the defaults", passport.get() == 0);
        co_return;
      });
    };
    co_await weir::with_local(passport, 5, weir::with_deadline(limit, ask));
    co_await p.close();
    always("all three have run", seen == 3);
  });
}

// ------------------------------------------------------------------ on

/// Goes from loop to loop and comes back with the number of its steps.
inline task<int> travel(const std::vector<weir::loop_ref>& loops, int steps,
                        std::atomic<int>& alive) {
  ++alive;
  const auto gone = weir::scope_exit([&] { --alive; });
  if (draw(2) == 0) co_await weir::sleep(1us * draw(3));
  if (steps == 0) co_return 0;
  const auto next = loops[static_cast<std::size_t>(draw(static_cast<int>(loops.size())))];
  const auto further = [&] { return travel(loops, steps - 1, alive); };
  co_return 1 + co_await weir::on(next, further);
}

/// Callers of other loops, cancelled at any moment, go on when the other side has ended. Holds for
/// real loops, too.
inline task<> come_home(const std::vector<weir::loop_ref>& loops, int travellers) {
  std::atomic<int> alive{0};
  int home = 0;
  int cancelled = 0;
  co_await weir::with_scope([&](scope& s) -> task<> {
    std::vector<weir::child<int>> all;
    for (int i = 0; i < travellers; ++i) {
      const auto first = loops[static_cast<std::size_t>(i % 2)];
      all.push_back(s.spawn_on(first, [&] { return travel(loops, 3, alive); }));
      if (draw(2) == 0) co_await a_moment();
      if (draw(3) == 0) all[static_cast<std::size_t>(draw(i + 1))].cancel();
    }
    for (auto& one : all) {
      const auto end = co_await weir::settle(one);
      home += end.is_value() && end.value() == 3 ? 1 : 0;
      cancelled += end.is_cancelled() ? 1 : 0;
    }
    always("nobody is on the way when all callers are back", alive == 0);
  });
  always("each call has one answer", home + cancelled == travellers);
}

inline task<> travellers_come_home(weir::sim::world& w) {
  const std::vector<weir::loop_ref> loops{w.loop("a"), w.loop("b"), weir::this_loop()};
  co_await come_home(loops, 6);
}

/// Loops that crash or end tell the callers of what ran there.
inline task<> callers_of_ended_loops_are_told(weir::sim::world& w) {
  int alive = 0;
  int answers = 0;
  const auto remote = [&]() -> task<> {
    ++alive;
    const auto gone = weir::scope_exit([&] { --alive; });
    co_await weir::sleep(1us * draw(4));
  };
  co_await weir::with_scope([&](scope& s) -> task<> {
    const auto call = [&](weir::loop_ref there) -> task<> {
      const std::exception_ptr error = co_await error_of_wait(weir::on(there, remote));
      always("who is not answered hears that the loop is gone",
             !error || error_code(error) == errc::loop_gone);
      ++answers;
    };
    const weir::loop_ref doomed = w.loop("doomed");
    weir::loop_ref brief;
    for (int i = 0; i < 3; ++i) s.spawn([&call, doomed] { return call(doomed); });
    co_await weir::with_loop_thread([&](weir::loop_thread& t) -> task<> {
      brief = t;
      for (int i = 0; i < 3; ++i) s.spawn([&call, there = brief] { return call(there); });
      co_await a_moment();
    });
    always("what ran on a loop that ended has ended", !brief.alive());
    w.crash("doomed");
    co_await s.idle();
    always("each call has one answer", answers == 6);
    always("what ran on ended loops is gone", alive == 0);
    co_await call(doomed);
    co_await call(brief);
  });
}

// ------------------------------------------------------------------ blocking

/// A blocking call is made once or, if it is cancelled before, not at all; its caller has its value
/// or is cancelled, and in the end nothing is left of the function.
inline task<> blocking_calls_are_made_once_or_not_at_all(weir::sim::world& w) {
  job_book b(100, 100, 16);
  const weir::loop_ref other = w.loop("other");
  const auto caller = [&] { return one_blocking_call(b); };
  co_await weir::with_scope([&](scope& s) -> task<> {
    std::vector<weir::child<void>> all;
    for (int i = 0; i < 6; ++i) {
      all.push_back(draw(3) == 0 ? s.spawn_on(other, caller) : s.spawn(caller));
      if (draw(2) == 0) co_await a_moment();
      if (draw(3) == 0) all[static_cast<std::size_t>(draw(i + 1))].cancel();
    }
    co_await s.idle();
  });
  co_await quiet();
  always("no function is left", b.gone() == b.opened());
  b.check();
}

}  // namespace pool_promises
