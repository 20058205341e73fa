// SPDX-License-Identifier: MIT
// Runs a random pipeline in the simulation and checks what it did.
#include <algorithm>

#include <weir/sim.hpp>

#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

constexpr std::int64_t pipeline_steps_max = 300'000;

/// A move that throws while the stream is built is an error like one of the stream.
task<> consume_or_fail(world& w, findings& found) {
  try {
    co_await consume(w, w.plan.use, found);
  } catch (const boom&) {
    found.error = std::current_exception();
  }
}

task<> cancelled_in_time(world& w, findings& found) {
  const usage& use = w.plan.use;
  if (w.plan.seed % 2 == 0) {
    try {
      co_await weir::with_timeout(ms(use.cancel_after), consume_or_fail(w, found));
    } catch (const weir::timeout_error&) {
    }
    co_return;
  }
  auto body = [&](weir::scope& s) -> task<> {
    auto child = s.spawn(consume_or_fail(w, found));
    co_await weir::sleep(ms(use.cancel_after));
    child.cancel("the consumer is not wanted any more");
  };
  co_await weir::with_scope(body);
}

task<> pipeline_program(world& w, findings& found) {
  auto body = [&](weir::scope& s) -> task<> {
    w.home = &s;
    w.agent = weir::spawn_agent<helper>(
        s, {.name = "helper", .capacity = 2, .overflow = weir::overflow::wait});
    weir::loop_thread other(s, {.name = "other"});
    w.other = other.ref();
    if (w.plan.use.cancel_after >= 0) {
      co_await cancelled_in_time(w, found);
    } else {
      co_await consume_or_fail(w, found);
    }
    w.stop();
  };
  co_await weir::with_scope(body);
  w.home = nullptr;
  w.agent.reset();
}

enum class kind : std::uint8_t { none, planned, timed_out, lagged, interrupted, other };

kind kind_of(const std::exception_ptr& error) {
  if (error == nullptr) return kind::none;
  try {
    std::rethrow_exception(error);
  } catch (const boom&) {
    return kind::planned;
  } catch (const weir::timeout_error&) {
    return kind::timed_out;
  } catch (const weir::error& e) {
    if (e.code() == weir::errc::lagged) return kind::lagged;
    if (e.code() == weir::errc::stream_interrupted) return kind::interrupted;
    return kind::other;
  } catch (...) {
    return kind::other;
  }
}

/// The consumer saw each item before the error.
bool by_items(const usage& use) {
  return use.what == consumer::pulls || use.what == consumer::broadcast;
}

/// `any(next(), sleep)` goes on with the sleep if next() fails.
bool hides_errors(const usage& use) {
  return use.what == consumer::pulls &&
         std::find(use.ways.begin(), use.ways.end(), pull::any_sleep) != use.ways.end();
}

/// Hostile items change what arrives, but nothing else.
void judge(world& w, const findings& found) {
  expectation wanted = expect(w.plan);
  const bool disturbed = w.counted_items.disturbed();
  const kind error = kind_of(found.error);
  bool allowed = false;
  switch (error) {
    case kind::none:
      allowed = true;
      break;
    case kind::planned:
      allowed = wanted.must_fail || wanted.may_fail || w.counted_items.burnt();
      break;
    case kind::timed_out:
      allowed = wanted.may_time_out;
      break;
    case kind::lagged:
      allowed = wanted.may_lag;
      break;
    case kind::interrupted:
      allowed = wanted.interrupts || (wanted.interruptible && gives_up(w.plan.use));
      wanted.how = wanted.how == known::exactly  ? known::as_prefix
                   : wanted.how == known::as_bag ? known::in_part
                                                 : wanted.how;
      break;
    default:
      break;
  }
  if (!allowed) w.problem("an error that must not be: " + weir::describe(found.error));
  if (disturbed) return;
  const bool hides = hides_errors(w.plan.use);
  if (found.ended && wanted.must_fail && !hides) w.problem("the error of the stream was lost");
  if (found.unordered) {
    if (wanted.how == known::exactly) wanted.how = known::as_bag;
    if (wanted.how < known::as_bag) wanted.how = known::in_part;
  }
  if (found.only_some && wanted.how < known::as_set) wanted.how = known::as_set;
  const bool complete = wanted.how == known::exactly || wanted.how == known::as_bag;
  if (found.count >= 0 && complete && found.count != static_cast<long>(wanted.items.size()))
    w.problem("the count is wrong: " + std::to_string(found.count));
  const bool certain = !hides || !(wanted.interruptible || wanted.interrupts);
  const bool whole = (found.ended && certain) ||
                     (error == kind::planned && wanted.must_fail && by_items(w.plan.use));
  if (std::string text = compare(wanted, found.got, whole); !text.empty()) w.problem(text);
}

}  // namespace

std::string run_pipeline(const pipeline_plan& plan) {
  ledger counted_items;
  std::string problems;
  {
    world w(plan, counted_items);
    if (plan.hostile.trap_every > 0)
      counted_items.set_trap(plan.hostile.trap_every, 5, [&] { w.spring(); });
    counted_items.set_fuse(plan.hostile.fuse);
    findings found;
    try {
      weir::sim::run(
          {.seed = plan.seed, .strategy = strategy_of(plan.in), .max_steps = pipeline_steps_max},
          [&] { return pipeline_program(w, found); });
      counted_items.disarm();
      judge(w, found);
      w.check_end();
    } catch (...) {
      counted_items.disarm();
      w.problem("the program failed: " + weir::describe(std::current_exception()));
    }
    for (const std::string& p : w.problems()) problems += p + "\n";
  }
  if (counted_items.alive() != 0)
    problems += "items left: " + std::to_string(counted_items.alive()) + "\n";
  return problems;
}

}  // namespace fuzz
