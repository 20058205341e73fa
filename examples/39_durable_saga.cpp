// SPDX-License-Identifier: MIT
// A saga: a run that calls other runs, and undoes what they did if one of them fails. A
// cancellation is passed on to the called run, and both clean up.

#include <cstdio>
#include <string>

#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

task<std::string> book_flight(std::string to) {
  co_return co_await weir::step("flight", [&] {
    say("flight to " + to);
    return "seat to " + to;
  });
}

task<> cancel_flight(std::string seat) {
  co_await weir::step("cancel", [&] { say("given back: " + seat); });
}

// The scope is that of the run: its defers run when the handler has ended, and own what they use.
task<std::string> book_hotel(weir::scope& s, std::string town) {
  s.defer([town](weir::outcome_view end) -> task<> {
    if (end.is_cancelled()) co_await weir::step("free", [&] { say("no hotel in " + town); });
  });
  co_await weir::sleep(2h);  // the hotel is slow
  if (town == "Paris") throw weir::terminal_error("no room in Paris");
  co_return "room in " + town;
}

task<> ask_for_a_review(std::string town) {
  co_await weir::step("mail", [&] { say("how was " + town + "?"); });
}

// What a defer uses is declared outside of the scope: the body's locals are destroyed before it.
task<std::string> trip(std::string town) {
  std::string seat;
  bool booked = false;
  auto body = [&](weir::scope& s) -> task<std::string> {
    s.defer([&]() -> task<> {
      if (!booked && !seat.empty()) co_await weir::call("cancel_flight", seat);
    });
    seat = co_await weir::call<std::string>("flight", town);
    const auto room = co_await weir::call<std::string>("hotel", town);
    booked = true;
    co_await weir::send("review", town, {.delay = 24h * 14});  // begins in two weeks
    co_return seat + ", " + room;
  };
  co_return co_await weir::with_scope(body);
}

task<> travel(weir::durable::engine& e, std::string town, weir::duration patience) {
  std::puts(town.c_str());
  auto run = co_await e.start<std::string>("trip", {.id = town}, town);
  co_await weir::sleep(patience);
  run.cancel("plans have changed");  // false, and nothing happens, if it has ended
  try {
    say(co_await run.result());
  } catch (const weir::cancelled_error& error) {
    say("cancelled: " + error.reason().message);
  } catch (const weir::terminal_error& error) {
    say(std::string("failed: ") + error.what());
  }
}

task<> program(weir::sim::world& w) {
  auto body = [](weir::durable::engine& e) -> task<> {
    e.add("trip", trip);
    e.add("flight", book_flight);
    e.add("cancel_flight", cancel_flight);
    e.add("hotel", book_hotel);
    e.add("review", ask_for_a_review);
    co_await e.open();
    co_await travel(e, "Rome", 3h);
    co_await travel(e, "Paris", 3h);
    co_await travel(e, "Oslo", 1h);
    std::puts("two weeks later");
    co_await weir::sleep(24h * 15);
  };
  co_await weir::durable::with_engine(
      {.path = "trips.weir", .segment_bytes = 64 << 10, .disk = &w.disk()}, body);
}

}  // namespace

int main() { weir::sim::run({}, program); }
