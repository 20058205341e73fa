// SPDX-License-Identifier: MIT
// Plans and runs random programs over hostile items.
#include <optional>
#include <sstream>

#include <weir/sim.hpp>

#include "stress/hostile_targets.hpp"

namespace fuzz {

namespace {

constexpr std::int64_t hostile_steps_max = 60'000;

constexpr const char* victim_names[] = {"queue",   "channel", "broadcast", "replay",       "state",
                                        "oneshot", "mailbox", "pool",      "from_callback"};
static_assert(std::size(victim_names) == static_cast<std::size_t>(victim::count));

/// What containers refuse is no failure: closed, full, lagging, in time.
template <class F>
void attempt(F&& f) {
  try {
    f();
  } catch (const std::exception&) {
  }
}

task<> do_all(target& t, const hostile_plan& plan, std::size_t first) {
  for (std::size_t i = first; i < plan.acts.size(); i += 2) {
    const int n = plan.acts[i];
    try {
      if (n % 3 == 0) {
        co_await t.wait(n / 3);
      } else {
        t.act(n / 3);
      }
    } catch (const std::exception&) {
      // As in `attempt`.
    }
    if (n % 7 == 0) co_await weir::sleep(1ms);
  }
}

task<> hostile_program(const hostile_plan& plan, std::unique_ptr<target>& t, ledger& items) {
  auto body = [&](weir::scope& s) -> task<> {
    const bool owned = plan.what == victim::mailbox || plan.what == victim::pool;
    t = owned ? make_agent_target(plan, s) : make_flow_target(plan);
    std::size_t at = 0;
    items.set_trap(plan.every, plan.times, [&plan, &t, at]() mutable {
      const int n = plan.call_backs[at++ % plan.call_backs.size()];
      if (t != nullptr) attempt([&] { t->act(n); });
    });
    items.set_fuse(plan.fuse);
    auto other = s.spawn(do_all(*t, plan, 1));
    co_await do_all(*t, plan, 0);
    co_await other;
    items.disarm();
    co_await t->finish();
  };
  (void)co_await weir::settle(weir::with_scope(body));
}

}  // namespace

hostile_plan make_hostile_plan(std::uint64_t seed) {
  dice d(seed);
  hostile_plan plan;
  plan.seed = seed;
  plan.what = static_cast<victim>(d.below(static_cast<int>(victim::count)));
  plan.capacity = d.between(1, 4);
  plan.every = d.between(1, 4);
  plan.times = d.between(1, 12);
  if (d.percent(20)) plan.fuse = d.between(1, 40);
  for (int i = d.between(4, 40); i > 0; --i) plan.acts.push_back(d.between(1, 999));
  for (int i = d.between(1, 6); i > 0; --i) plan.call_backs.push_back(d.between(0, 999));
  plan.in = any_order(d);
  return plan;
}

std::string to_text(const hostile_plan& plan) {
  std::ostringstream out;
  out << "seed " << plan.seed << ", order " << name_of(plan.in) << "\n"
      << victim_names[static_cast<int>(plan.what)] << "(" << plan.capacity
      << "), whose items call back after every " << plan.every << ". destruction, " << plan.times
      << " times";
  if (plan.fuse > 0) out << ", move " << plan.fuse << " throws";
  out << "\n  acts (n % 3 == 0: wait(n / 3), else act(n / 3)):";
  for (const int n : plan.acts) out << " " << n;
  out << "\n  destructors act:";
  for (const int n : plan.call_backs) out << " " << n;
  return out.str() + "\n";
}

std::string run_hostile(const hostile_plan& plan) {
  ledger items;
  std::string problems;
  {
    std::unique_ptr<target> t;
    try {
      weir::sim::run(
          {.seed = plan.seed, .strategy = strategy_of(plan.in), .max_steps = hostile_steps_max},
          [&] { return hostile_program(plan, t, items); });
    } catch (...) {
      problems = "the program failed: " + weir::describe(std::current_exception()) + "\n";
    }
    items.disarm();
  }
  if (items.alive() != 0) problems += "items left: " + std::to_string(items.alive()) + "\n";
  if (items.destroyed_twice() != 0) problems += "items were destroyed twice\n";
  return problems;
}

}  // namespace fuzz
