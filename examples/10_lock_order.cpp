// SPDX-License-Identifier: MIT
// A deadlock by lock order: two transfers between the same accounts in opposite directions, each
// locking the account that it takes from before the one that it gives to.

#include <cstdio>
#include <regex>
#include <sstream>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

/// The lock stays held over awaits, so it is a governor with one permit.
struct account {
  explicit account(const char* owner) : lock(1, {.name = owner}) {}
  weir::counting_governor lock;
  int balance = 100;
};

using transfer = task<> (*)(account& from, account& to, int amount);

task<> transfer_as_it_comes(account& from, account& to, int amount) {
  const weir::permit first = co_await from.lock.acquire();
  const weir::permit second = co_await to.lock.acquire();
  from.balance -= amount;
  to.balance += amount;
}

// The fix: both locks are taken in one order, independent of the direction of the transfer.
task<> transfer_in_order(account& from, account& to, int amount) {
  const bool swap = to.lock.name() < from.lock.name();
  account& earlier = swap ? to : from;
  account& later = swap ? from : to;
  weir::sim::sometimes("a transfer has to wait", earlier.lock.available() == 0);
  const weir::permit first = co_await earlier.lock.acquire();
  const weir::permit second = co_await later.lock.acquire();
  from.balance -= amount;
  to.balance += amount;
}

task<> two_transfers(transfer move) {
  account alice("alice");
  account bob("bob");
  auto body = [&](weir::scope& s) -> task<> {
    s.spawn(move(alice, bob, 10), {.name = "rent"});
    s.spawn(move(bob, alice, 20), {.name = "refund"});
    co_await s.join();
  };
  co_await weir::with_scope({.name = "bank"}, body);
  weir::sim::always("no money is lost", alice.balance + bob.balance == 200);
}

task<> buggy() { return two_transfers(transfer_as_it_comes); }
task<> repaired() { return two_transfers(transfer_in_order); }

/// The tree has a line for every fiber; these are the ones that wait for a lock.
void show_who_waits(const std::string& tree) {
  static const std::regex waiter("fiber ('.*') spawned at .*, (waits on acquire .*)");
  std::istringstream lines(tree);
  std::smatch found;
  for (std::string line; std::getline(lines, line);)
    if (std::regex_search(line, found, waiter)) say(found.str(1) + " " + found.str(2));
}

}  // namespace

int main() {
  const weir::sim::explore_options how{.runs = 1000, .strategy = weir::sim::pct(2)};
  std::puts("in the order of production");
  weir::sim::run({}, buggy);
  say("passes");

  std::puts("under the adversary");
  const auto report = weir::sim::explore(how, buggy);
  say(report.ok() ? "nothing found?" : report.message());
  show_who_waits(report.tree());

  std::puts("repaired");
  const auto after = weir::sim::explore(how, repaired);
  say(after.ok() ? "passes " + std::to_string(after.runs()) + " runs" : after.message());
}
