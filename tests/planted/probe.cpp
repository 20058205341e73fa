// SPDX-License-Identifier: MIT
// Small programs with promises of weir in them, run in many orders. check.cmake links this with
// copies of the library in which a defect was planted, to see that the simulation finds it.
//
// Each program has a process of its own. Status: 0 if every promise holds, 1 if the simulation says
// that one does not, 2 if a program only died or hung.
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "planted/probe_main.hpp"

namespace {

using namespace std::chrono_literals;
using weir::scope;
using weir::task;
namespace sim = weir::sim;

task<> sleep_for(weir::duration d) { co_await weir::sleep(d); }

task<int> after(weir::duration d, int value) {
  co_await weir::sleep(d);
  co_return value;
}

// ------------------------------------------------------------------ one loop

/// Waking somebody never runs him: a fiber has the loop for itself between two awaits.
task<> nobody_runs_between_two_awaits() {
  bool busy = false;
  const auto look = [&] { sim::always("a fiber runs alone between two awaits", !busy); };
  weir::counting_governor g(1);
  std::vector<weir::resumer<>> answers;
  co_await weir::with_scope([&](scope& s) -> task<> {
    weir::permit held = co_await g.acquire();
    s.spawn([&]() -> task<> {
      const weir::permit mine = co_await g.acquire();
      look();
    });
    auto answered = s.spawn([&]() -> task<> {
      co_await weir::suspend<>([&](weir::resumer<> r) { answers.push_back(std::move(r)); });
      look();
    });
    s.spawn([&]() -> task<> {
      co_await answered;
      look();
    });
    co_await weir::sleep(1ms);
    busy = true;
    answers.front().complete();
    held.release();
    busy = false;
  });
}

/// A cancelled sleep does not come back, and takes its timer with it.
task<> cancelled_sleepers_leave_nothing() {
  bool went_on = false;
  co_await weir::with_scope([&](scope& s) -> task<> {
    auto sleeper = s.spawn([&]() -> task<> {
      co_await weir::sleep(1h);
      went_on = true;
    });
    auto limited = s.spawn([]() -> task<> { co_await weir::with_timeout(2h, sleep_for(1h)); });
    for (int i = 0; i < 3; ++i) co_await weir::yield();
    sleeper.cancel();
    limited.cancel();
  });
  sim::always("a cancelled sleep does not come back", !went_on);
}

/// Somebody who was cancelled while he waited for a future, or for the children of a scope, is not
/// woken any more.
task<> cancelled_observers_leave_nothing() {
  co_await weir::with_scope([](scope& s) -> task<> {
    auto slow = s.spawn(after(10ms, 1));
    auto observer = s.spawn([&]() -> task<> { (void)co_await slow; });
    auto other = s.spawn([&]() -> task<> { (void)co_await slow; });
    co_await weir::sleep(1ms);
    observer.cancel();
    co_await weir::sleep(1ms);
    sim::always("a cancelled observer ends", observer.done());
    co_await other;
  });
}

enum class ready { yield, task, future, permit, sleep };

/// Cancels its own scope, and then awaits something that is there already.
task<> await_when_cancelled(ready what, bool& went_on) {
  weir::counting_governor g(1);
  (void)co_await weir::settle(weir::with_scope([&](scope& s) -> task<> {
    auto done = s.spawn(after(0ms, 1));
    co_await s.idle();
    s.cancel();
    if (what == ready::yield) co_await weir::yield();
    if (what == ready::task) co_await sleep_for(0ms);
    if (what == ready::future) co_await done;
    if (what == ready::permit) (void)co_await g.acquire();
    if (what == ready::sleep) co_await weir::sleep(0ms);
    went_on = true;
  }));
}

/// An await that begins after the cancellation does not come back, also if it need not wait.
task<> no_await_goes_on_after_a_cancellation() {
  for (ready what : {ready::yield, ready::task, ready::future, ready::permit, ready::sleep}) {
    bool went_on = false;
    co_await await_when_cancelled(what, went_on);
    sim::always("no await goes on after a cancellation", !went_on);
  }
}

/// What confirms a cancellation late delivers nothing, whatever it brings.
task<> a_late_confirmation_is_no_value() {
  co_await weir::with_scope([](scope& s) -> task<> {
    std::optional<weir::resumer<int>> answer;
    bool delivered = false;
    auto waiter = s.spawn([&]() -> task<> {
      (void)co_await weir::suspend<int>([&](weir::resumer<int> r) {
        answer.emplace(std::move(r));
        return [] { return weir::cancel_result::later; };
      });
      delivered = true;
    });
    co_await weir::sleep(1ms);
    waiter.cancel();
    co_await weir::sleep(1ms);
    answer->complete(7);
    co_await s.idle();
    sim::always("a value that came after the cancellation is not delivered", !delivered);
  });
}

/// Whoever stood behind a cancelled heavy request gets what is free, and every permit comes back.
task<> permits_survive_cancellation() {
  weir::counting_governor g(2);
  int served = 0;
  const auto use = [&](std::int64_t weight) -> task<> {
    const weir::permit mine = co_await g.acquire(weight);
    co_await weir::yield();
    ++served;
  };
  co_await weir::with_scope([&](scope& s) -> task<> {
    std::optional<weir::permit> held = co_await g.acquire();
    auto heavy = s.spawn([&] { return use(2); });
    auto light = s.spawn([&] { return use(1); });
    co_await weir::yield();
    heavy.cancel();
    co_await light;
    sim::always("the light one was served while a permit was out", served >= 1);
    held.reset();
  });
  sim::always("all permits came back", g.available() == 2 && g.waiting() == 0);
}

/// The body of a cancelled scope is unwound when its children are gone, which may use its locals.
task<> the_body_is_unwound_last() {
  bool body_lives = false;
  const auto child = [&]() -> task<> {
    const auto look =
        weir::scope_exit([&] { sim::always("the body outlives its children", body_lives); });
    co_await weir::sleep(1h);
  };
  (void)co_await weir::settle(weir::with_scope([&](scope& s) -> task<> {
    body_lives = true;
    const auto gone = weir::scope_exit([&] { body_lives = false; });
    s.spawn(child);
    s.spawn([&]() -> task<> {
      co_await weir::with_scope([&](scope& inner) -> task<> {
        inner.spawn(child);
        co_await weir::sleep(2h);
      });
    });
    co_await weir::sleep(1ms);
    s.cancel();
    co_await weir::sleep(1h);
  }));
}

/// No sleep is too short, and none ends before a shorter one that began with it.
task<> sleeps_end_in_time_and_in_order() {
  weir::duration last{};
  co_await weir::with_scope([&](scope& s) -> task<> {
    for (const weir::duration d : {64ns, 63ns, 4096ns, 4095ns, 1ms + 0ns, 1ms - 1ns}) {
      s.spawn([&, d]() -> task<> {
        const auto begin = weir::now();
        co_await weir::sleep_until(weir::time_point() + d);
        sim::always("no sleep is too short", weir::now() >= weir::time_point() + d);
        sim::always("time never goes back", weir::now() >= begin);
        sim::always("sleeps end in the order of their times", last <= d);
        last = d;
      });
    }
    co_return;
  });
}

/// A value that arrives in the instant of the time limit wins.
task<> a_value_at_its_limit_is_delivered() {
  const auto waited = co_await weir::settle(weir::with_timeout(10ms, weir::sleep(10ms)));
  sim::always("a wait that ends at its limit is no timeout", waited.is_value());
  const auto value = co_await weir::settle(weir::with_timeout(10ms, after(10ms, 1)));
  sim::always("a value at the limit is no timeout", value.is_value());
  co_await weir::with_scope([](scope& s) -> task<> {
    auto source = s.spawn(after(10ms, 1));
    const auto seen = co_await weir::settle(
        weir::with_timeout(10ms, [&]() -> task<int> { co_return co_await source; }));
    sim::always("a value of another fiber at the limit is no timeout", seen.is_value());
  });
}

// ------------------------------------------------------------------ several loops

/// Every message that is posted is called, however many and whenever they come.
task<> every_message_arrives(sim::world& w) {
  const weir::loop_ref home = weir::this_loop();
  const weir::loop_ref peer = w.loop("peer");
  for (int round = 0; round < 3; ++round) {
    int arrived = 0;
    co_await weir::suspend<>([&](weir::resumer<> done) {
      for (int i = 0; i < 2; ++i)
        peer.post([&arrived, home, done] {
          home.post([&arrived, done]() mutable {
            if (++arrived == 2) done.complete();
          });
        });
    });
  }
}

/// Says that it was made: a resumer makes the value only if its answer counts.
struct letter {
  explicit letter(int& made) { ++made; }
};

/// An answer that another loop has given and that was accepted is delivered, although the waiter is
/// cancelled while it is on its way.
task<> an_accepted_answer_is_delivered(sim::world& w) {
  const weir::loop_ref peer = w.loop("peer");
  int accepted = 0;
  int delivered = 0;
  co_await weir::with_scope([&](scope& s) -> task<> {
    auto waiter = s.spawn([&]() -> task<> {
      (void)co_await weir::suspend<letter>([&](weir::resumer<letter> r) {
        peer.post([r, &accepted]() mutable { r.complete(accepted); });
      });
      ++delivered;
    });
    for (int i = 0; i < 8; ++i) co_await weir::yield();
    waiter.cancel();
    co_await s.idle();
  });
  sim::always("an accepted answer is delivered", accepted == delivered);
}

// ------------------------------------------------------------------ all of them

using probe::explored;

constexpr unsigned limit_s = 5;  // of a program

constexpr probe::program programs[] = {
    {"nobody_runs_between_two_awaits", explored<nobody_runs_between_two_awaits>},
    {"cancelled_sleepers_leave_nothing", explored<cancelled_sleepers_leave_nothing>},
    {"cancelled_observers_leave_nothing", explored<cancelled_observers_leave_nothing>},
    {"no_await_goes_on_after_a_cancellation", explored<no_await_goes_on_after_a_cancellation>},
    {"a_late_confirmation_is_no_value", explored<a_late_confirmation_is_no_value>},
    {"permits_survive_cancellation", explored<permits_survive_cancellation>},
    {"the_body_is_unwound_last", explored<the_body_is_unwound_last>},
    {"sleeps_end_in_time_and_in_order", explored<sleeps_end_in_time_and_in_order>},
    {"a_value_at_its_limit_is_delivered", explored<a_value_at_its_limit_is_delivered>},
    {"every_message_arrives", explored<every_message_arrives>},
    {"an_accepted_answer_is_delivered", explored<an_accepted_answer_is_delivered>},
};

}  // namespace

int main() { return probe::outcome_of(programs, limit_s); }
