// SPDX-License-Identifier: MIT
// A lost update across an await: found by `explore`, shrunk, replayed, and fixed.

#include <cstdio>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

/// Stands for a call that nearly always completes at once: from a cache, or into a buffer. In
/// production order it keeps the turn; under the adversary every await may give it up.
auto quick_call() { return weir::checkpoint(); }

using depositor = task<> (*)(int& balance, int amount);

task<> deposit(int& balance, int amount) {
  const int before = balance;
  co_await quick_call();      // writes to the audit log
  balance = before + amount;  // what was read before the await
}

// The fix: nothing that was read before an await is written after it.
task<> repaired_deposit(int& balance, int amount) {
  co_await quick_call();
  balance += amount;
}

// The amount of the salary is looked up first, so the two deposits rarely overlap.
task<> deposit_salary(depositor how, int& balance) {
  co_await quick_call();
  co_await how(balance, 1000);
}

task<> two_deposits(depositor how) {
  int balance = 0;
  auto body = [&](weir::scope& s) -> task<> {
    s.spawn(how(balance, 20), {.name = "gift"});
    s.spawn(deposit_salary(how, balance), {.name = "salary"});
    co_await s.join();
    weir::sim::always("no deposit is lost", balance == 1020);
  };
  co_await weir::with_scope({.name = "bank"}, body);
}

task<> buggy() { return two_deposits(deposit); }
task<> repaired() { return two_deposits(repaired_deposit); }

weir::sim::report search() {
  auto report = weir::sim::explore({.runs = 1000, .strategy = weir::sim::pct(2)}, buggy);
  if (report.ok()) return report;
  say("found: " + report.message());
  say("preemptions that it needs: " + std::to_string(report.trace().preemptions()));
  return report;
}

// A trace is one line of text, with which the run can be repeated.
void repeat(const std::string& text) {
  const auto trace = weir::sim::trace::parse(text);
  try {
    weir::sim::replay(trace, buggy);
    say("the trace does not fail any more");
  } catch (const weir::sim::failure& e) {
    say("fails again: " + e.code().message());
  }
}

}  // namespace

int main() {
  std::puts("in the order of production");
  weir::sim::run({}, buggy);
  say("passes");
  std::puts("under the adversary");
  const weir::sim::report report = search();
  std::puts("the trace, from its text");
  repeat(report.trace().text());
  std::puts("repaired");
  const auto after = weir::sim::explore({.runs = 1000, .strategy = weir::sim::pct(2)}, repaired);
  say(after.ok() ? "passes " + std::to_string(after.runs()) + " runs" : after.message());
}
