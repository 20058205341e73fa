// SPDX-License-Identifier: MIT
// Small programs with the promises of pools in them, for sim::explore. They know a pool from its
// reference page only. A wake-up that is lost shows as a deadlock, or as a job that does not run
// although nothing else is ready.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "toolkit/job_book.hpp"

namespace pool_promises {

using namespace std::chrono_literals;
using namespace weir_test;
using weir::errc;
using weir::scope;
using weir::task;
using weir::sim::always;

inline int draw(int n) { return static_cast<int>(weir::random() % static_cast<unsigned>(n)); }

struct shape {
  int workers;
  int queue;
  int places() const { return workers + queue; }
  weir::pool_options options(std::string_view name = "p") const {
    return {.name = name, .workers = workers, .queue_size = queue};
  }
};

inline shape any_shape() {
  const int workers = 1 + draw(3);
  return {workers, 1 + draw(2)};
}

/// Virtual time passes only when nothing is ready on any loop.
inline task<> quiet() { co_await weir::sleep(1us); }

/// Gives others a few turns, and sometimes lets them all finish what they can.
inline task<> a_moment() {
  const int turns = draw(12);
  if (turns == 11) co_return co_await quiet();
  for (int i = 0; i < turns; ++i) co_await weir::yield();
}

/// Requires: what was accepted ends within a millisecond.
inline task<> every_place_is_free(weir::pool& p, shape size) {
  co_await weir::sleep(1ms);
  int accepted = 0;
  while (!p.try_submit(weir::sleep(1ms))) ++accepted;
  always("every place is free in the end", accepted == size.places());
  co_await weir::sleep(1ms * (size.places() + 1));
}

/// Awaits a wait and gives its error, or null.
template <class Wait>
task<std::exception_ptr> error_of_wait(Wait wait) {
  try {
    (void)co_await std::move(wait);
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

// ------------------------------------------------------------------ nothing is cancelled

inline task<> submit_one(weir::pool& p, job_book& b, int id) {
  b.arrive(id);
  if (draw(2) == 0) {
    auto job = plain_job(b, id);
    co_await p.submit(std::move(job));
  } else {
    auto job = slow_job(b, id, 1us * draw(3));
    co_await p.submit(std::move(job));
  }
  b.accept(id);
}

inline void try_one(weir::pool& p, job_book& b, int id) {
  b.arrive(id);
  const std::error_code refused =
      draw(2) == 0 ? p.try_submit(plain_job(b, id)) : p.try_submit(slow_job(b, id, 1us * draw(3)));
  always("try_submit says that the pool is full, or nothing",
         !refused || refused == errc::pool_full);
  if (!refused) b.accept(id);
}

inline task<> run_one(weir::pool& p, job_book& b, int id) {
  b.arrive(id);
  auto job = slow_job(b, id, 1us * draw(3));
  const int value = co_await p.run(std::move(job));
  b.accept(id);
  b.caller_left(id);
  always("a run has the value of its own job", value == id);
}

inline task<> use(weir::pool& p, job_book& b, int jobs) {
  for (int i = 0; i < jobs; ++i) {
    const int id = b.open();
    const int how = draw(3);
    if (how == 0) try_one(p, b, id);
    if (how == 1) co_await submit_one(p, b, id);
    if (how == 2) co_await run_one(p, b, id);
    co_await a_moment();
  }
}

/// Every accepted job runs once, in the order of acceptance, and the limits hold; submitters are on
/// two loops, and nobody waits for ever.
inline task<> every_accepted_job_runs_once_and_in_order(weir::sim::world& w) {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 16);
  const weir::loop_ref other = w.loop("other");
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    co_await weir::with_scope([&](scope& users) -> task<> {
      const auto user = [&] { return use(p, b, 4); };
      users.spawn(user);
      users.spawn(user);
      users.spawn_on(other, user);
      users.spawn_on(other, user);
      co_await users.join();
    });
    if (draw(2) == 0) co_await every_place_is_free(p, size);
    co_await p.close();
    b.must_balance();
  });
  b.check();
}

/// No job waits while a worker is idle: whenever nothing else is ready, as many run as can.
inline task<> no_job_waits_while_a_worker_is_idle() {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 64);
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    int accepted = 0;
    const weir::time_point start = weir::now();
    for (int round = 0; round < 5; ++round) {
      for (int n = draw(size.places() + 1); n > 0; --n) {
        const int id = b.open();
        accepted += p.try_submit(slow_job(b, id, 10us * (1 + draw(6)))) ? 0 : 1;
        if (draw(2) == 0) co_await weir::yield();
      }
      const weir::time_point next = start + 30us * (1 + round);
      co_await weir::sleep_until(next - 5us);
      const int left = accepted - b.ended();
      always("no job waits while a worker is idle", b.running() == std::min(left, size.workers));
      co_await weir::sleep_until(next);
    }
    co_await p.close();
    always("all have run when close returns", b.ended() == accepted);
  });
  b.check();
}

/// Whoever waits for room gets the first place that becomes free, however large the pool is.
inline task<> who_waits_gets_the_first_free_place() {
  const shape size{1, 15 + 8 * draw(3)};
  job_book b(size.workers, size.places(), 64);
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    for (int i = 0; i < size.places(); ++i)
      always("there is room", !p.try_submit(slow_job(b, b.open(), 10us)));
    int accepted = 0;
    const auto waiter = [&]() -> task<> {
      auto job = plain_job(b, b.open());
      co_await p.submit(std::move(job));
      ++accepted;
    };
    for (int i = 0; i < 3; ++i) s.spawn(waiter);
    co_await weir::sleep(5us);
    for (int places = 0; places < 4; ++places) {
      always("a free place is given to who waits", accepted == std::min(places, 3));
      always("while somebody waits the pool is full",
             places >= 3 || p.try_submit([] {}) == errc::pool_full);
      co_await weir::sleep(10us);
    }
    co_await p.close();
  });
  b.check();
}

/// Workers that have slept for a while wake for each of many jobs; whoever waits gets an answer.
inline task<> sleeping_workers_wake(weir::sim::world& w) {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 32);
  const weir::loop_ref other = w.loop("other");
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    const auto caller = [&]() -> task<> {
      for (int i = 0; i < 5; ++i) {
        const int id = b.open();
        auto job = plain_job(b, id);
        always("a run has the value of its own job", co_await p.run(std::move(job)) == id);
        b.caller_left(id);
        if (draw(2) == 0) co_await weir::sleep(1us * (1 + draw(2)));
      }
    };
    co_await weir::with_scope([&](scope& callers) -> task<> {
      callers.spawn(caller);
      callers.spawn(caller);
      callers.spawn_on(other, caller);
      co_await callers.join();
    });
  });
  b.check();
}

// ------------------------------------------------------------------ cancellations

/// A submitter that may be cancelled at any moment.
inline task<> uncertain(weir::pool& p, job_book& b, int how) {
  const int id = b.open();
  if (how == 0) {
    auto job = slow_job(b, id, 1us * draw(3));
    co_await p.submit(std::move(job));
    b.accept(id);
  } else if (how == 1) {
    auto job = plain_job(b, id);
    const std::exception_ptr error = co_await error_of_wait(p.submit_for(2us, std::move(job)));
    if (!error) co_return b.accept(id);
    always("a limited submit fails with a timeout", error_code(error) == errc::timeout);
    always("nothing is left of a submit that timed out", b.begun(id) == 0 && b.gone(id) == 1);
    b.caller_left(id);
  } else {
    const auto left = weir::scope_exit([&] { b.caller_left(id); });
    auto job = slow_job(b, id, 1us * draw(4));
    const int value = co_await p.run(std::move(job));
    b.must(value == id, "a run has the value of its own job");
  }
}

/// Whoever is cancelled, or has no more time, takes his job back or waits for its end; every place
/// is free afterwards.
inline task<> cancelled_callers_leave_nothing(weir::sim::world& w) {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 32);
  const weir::loop_ref other = w.loop("other");
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    co_await weir::with_scope([&](scope& users) -> task<> {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < 8; ++i) {
        const auto user = [&, how = draw(3)] { return uncertain(p, b, how); };
        all.push_back(draw(3) == 0 ? users.spawn_on(other, user) : users.spawn(user));
        if (draw(3) == 0) co_await a_moment();
        if (draw(2) == 0) all[static_cast<std::size_t>(draw(i + 1))].cancel();
      }
      co_await a_moment();
      for (int i = 0; i < 3; ++i) all[static_cast<std::size_t>(draw(8))].cancel();
      co_await users.join();
    });
    co_await every_place_is_free(p, size);
    co_await p.close();
    always("what had begun has ended", b.begun() == b.ended());
    always("no function of a job is left", b.gone() == b.opened());
  });
  b.check();
}

/// A run that is cancelled while it is queued never begins; one that runs is asked to stop and
/// joined, and a plain callable finishes.
inline task<> a_cancelled_run_is_taken_back_or_joined() {
  job_book b(1, 3, 8);
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, shape{1, 2}.options());
    const auto caller = [&](int id, weir::duration d) -> task<> {
      const auto left = weir::scope_exit([&b, id] { b.caller_left(id); });
      auto job = slow_job(b, id, d);
      (void)co_await p.run(std::move(job));
    };
    std::vector<weir::child<void>> all;
    for (int i = 0; i < 4; ++i) {
      const int id = b.open();
      all.push_back(s.spawn([&caller, id] { return caller(id, 1h); }));
      co_await quiet();
    }
    always("only the first has begun", b.begun() == 1 && b.running() == 1);
    const int chosen = draw(4);
    all[static_cast<std::size_t>(chosen)].cancel();
    co_await quiet();
    always("a cancelled run is over at once", all[static_cast<std::size_t>(chosen)].done());
    always("what is taken back never begins", chosen == 0 || b.begun(chosen) == 0);
    always("a running job that is cancelled ends and makes room", chosen != 0 || b.begun(1) == 1);
    for (auto& one : all) one.cancel();
    co_await s.idle();
    always("nothing runs any more", b.running() == 0 && b.gone() == 4);
    co_await every_place_is_free(p, {1, 2});
  });
  b.check();
}

/// A run that is cancelled at any moment does not wait for the end of its job: the job does not
/// begin, or is asked to stop.
inline task<> a_cancelled_run_does_not_wait_for_its_job() {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 16);
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    const auto caller = [&]() -> task<> {
      const int id = b.open();
      const auto left = weir::scope_exit([&] { b.caller_left(id); });
      auto job = slow_job(b, id, 1h);
      (void)co_await p.run(std::move(job));
    };
    if (draw(2) == 0) co_await quiet();
    std::vector<weir::child<void>> all;
    for (int i = 0; i < 4; ++i) all.push_back(s.spawn(caller));
    co_await a_moment();
    for (auto& one : all) {
      one.cancel();
      if (draw(3) == 0) co_await weir::yield();
    }
    const weir::time_point then = weir::now();
    co_await s.idle();
    always("a cancelled run does not wait for its job", weir::now() == then);
    co_await every_place_is_free(p, size);
  });
  b.check();
}

// ------------------------------------------------------------------ the end

struct endings {
  int closed = 0;    // refused with pool_closed
  int accepted = 0;  // submitted, not run
};

/// Submits until the pool is closed.
inline task<> submit_until_closed(weir::pool& p, job_book& b, endings& seen, int jobs) {
  for (int i = 0; i < jobs; ++i) {
    const int id = b.open();
    const ends how = draw(4) == 0 ? ends::badly : ends::well;
    std::exception_ptr error;
    auto job = slow_job(b, id, 1us * draw(3), how);
    if (draw(2) == 0) {
      error = co_await error_of_wait(p.submit(std::move(job)));
      if (!error) b.accept(id);
      seen.accepted += error ? 0 : 1;
    } else {
      error = co_await error_of_wait(p.run(std::move(job)));
      if (!error || failed_job(error) == id) b.accept(id);
      b.caller_left(id, error);
      always("the error of a run goes to its caller",
             !error || failed_job(error) == -1 || (how == ends::badly && failed_job(error) == id));
      if (failed_job(error) == id) continue;
    }
    if (!error) continue;
    always("a closed pool says so", error_code(error) == errc::pool_closed);
    always("what was refused has not begun", b.begun(id) == 0);
    ++seen.closed;
  }
}

/// close() refuses whoever waits, lets what was accepted run, and rethrows the error of a submitted
/// job, the first one with a single worker.
inline task<> close_drains_and_refuses(weir::sim::world& w) {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 16);
  const weir::loop_ref other = w.loop("other");
  endings seen;
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    co_await weir::with_scope([&](scope& users) -> task<> {
      const auto user = [&] { return submit_until_closed(p, b, seen, 4); };
      users.spawn(user);
      users.spawn(user);
      users.spawn_on(other, user);
      co_await a_moment();
      co_await a_moment();
      const std::exception_ptr error = co_await error_of_wait(p.close());
      always("close throws what a job has failed with, or nothing",
             !error || failed_job(error) >= 0);
      always("nothing runs when close has returned", b.running() == 0);
      const int ended = b.ended();
      always("a closed pool refuses", p.try_submit([] {}) == errc::pool_closed);
      always("close is for once",
             error_code(co_await error_of_wait(p.close())) == errc::already_waited);
      co_await users.join();
      always("nothing begins when close has returned", b.ended() == ended);
    });
    b.must_balance();
  });
  b.check();
}

/// cancel() drops exactly what is queued, tells how much, asks what runs to stop, and answers
/// everybody.
inline task<> cancel_drops_and_counts() {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 16);
  std::uint64_t dropped = 0;
  auto watch = weir::on_event([&](const weir::event_info& e) {
    if (e.name == "job_dropped") dropped += e.number;
  });
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::pool p(s, size.options());
    int answered = 0;
    const int runs = draw(size.places() + 1);
    const int jobs = runs + draw(size.places() + 1 - runs);
    const auto caller = [&]() -> task<> {
      const int id = b.open();
      auto job = slow_job(b, id, 1h);
      const std::exception_ptr error = co_await error_of_wait(p.run(std::move(job)));
      b.caller_left(id, error);
      b.must(error_code(error) == errc::cancelled, "a dropped run is told that it was cancelled");
      ++answered;
    };
    for (int i = 0; i < runs; ++i) s.spawn(caller);
    co_await quiet();
    for (int i = runs; i < jobs; ++i) {
      const int id = b.open();
      always("there is room", !p.try_submit(slow_job(b, id, 1h)));
    }
    co_await quiet();
    const int running = std::min(jobs, size.workers);
    always("no job waits while a worker is idle", b.running() == running);
    p.cancel();
    co_await s.idle();
    co_await p.close();
    always("every run has its answer", answered == runs);
    always("no dropped job has begun", b.begun() == running && b.ended() == running);
    always("dropped jobs are counted", dropped == static_cast<std::uint64_t>(jobs - running));
    always("no function of a job is left", b.gone() == jobs);
  });
  b.check();
}

/// cancel() at any moment: who waits is refused or accepted, nothing begins afterwards, everything
/// is joined.
inline task<> cancel_at_any_moment(weir::sim::world& w) {
  const shape size = any_shape();
  job_book b(size.workers, size.places(), 16);
  const weir::loop_ref other = w.loop("other");
  co_await weir::with_scope([&](scope& s) -> task<> {
    auto p = std::make_unique<weir::pool>(s, size.options());
    const auto user = [&](int how) -> task<> {
      const int id = b.open();
      auto job = slow_job(b, id, 1us * draw(3));
      std::exception_ptr error;
      if (how == 0) error = co_await error_of_wait(p->submit(std::move(job)));
      if (how == 1) error = co_await error_of_wait(p->run(std::move(job)));
      if (how == 1) b.caller_left(id, error);
      if (!error) co_return;
      const std::error_code code = error_code(error);
      b.must(code == errc::pool_closed || code == errc::cancelled,
             "who is refused hears that the pool is closed or cancelled");
      b.must(code != errc::pool_closed || b.begun(id) == 0, "what was refused has not begun");
    };
    co_await weir::with_scope([&](scope& users) -> task<> {
      for (int i = 0; i < 6; ++i) {
        const auto one = [&user, how = draw(2)] { return user(how); };
        if (draw(3) == 0) {
          users.spawn_on(other, one);
        } else {
          users.spawn(one);
        }
      }
      co_await a_moment();
      p->cancel();
      co_await users.join();
    });
    if (draw(2) == 0) co_await p->close();
    p.reset();
  });
  always("what had begun has ended", b.begun() == b.ended());
  always("no function of a job is left", b.gone() == b.opened());
  b.check();
}

}  // namespace pool_promises
