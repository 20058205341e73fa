// SPDX-License-Identifier: MIT
// A tour of weir: how to own, stop and watch concurrent work. Run it with `./dev run 01_tour`; each
// chapter is one function and prints what it shows.
//
// The tour runs on virtual time (`weir::sim::run`), so its hours take microseconds and it prints
// the same text on every machine. On real time the last line of the file would be
// `weir::run(tour())`, and nothing else would change.

#include <cstdio>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

// ------------------------------------------------------------------ how the tour prints

void chapter(const char* title) { std::printf("\n%s\n", title); }

/// Prints one line with the loop's time before it.
void say(const std::string& what) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(weir::now().time_since_epoch());
  std::printf("  [%6lld ms] %s\n", static_cast<long long>(ms.count()), what.c_str());
}

/// Descriptions and dumps name functions, which each compiler spells differently, and show the
/// library's own frames. The tour omits both, because a test compares its output.
void show(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("include/weir/") != std::string::npos) continue;
    // "thrown in F, after ...", "awaited in F at ...", "at file:line in F"
    static const std::regex function(
        "(thrown|awaited) in .*?(, after | at )|(at [^ ]+:[0-9]+) in .*");
    std::printf("  | %s\n", std::regex_replace(line, function, "$1$2$3").c_str());
  }
}

/// Says how it ended: normally, or because its fiber was cancelled, and why.
class witness {
 public:
  explicit witness(const char* name) : name_(name) {}
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() {
    std::string end = " ends normally";
    if (const weir::cancel_reason* why = weir::unwinding()) {
      end = " is cancelled: " + std::string(to_string(why->kind));
      if (!why->message.empty()) end += ", " + why->message;
    }
    say(name_ + end);
  }

 private:
  const char* name_;
};

// ------------------------------------------------------------------ 1

task<int> slow_number(int value, weir::duration delay) {
  co_await weir::sleep(delay);
  co_return value;
}

// Children run at the same time, on one thread. Nothing passes the end of `with_scope` before both
// have ended, whichever way the body is left.
task<> a_scope_owns_its_children() {
  chapter("1. A scope owns its children");
  const int sum = co_await weir::with_scope([](weir::scope& s) -> task<int> {
    auto forty = s.spawn(slow_number(40, 200ms));
    auto two = s.spawn(slow_number(2, 100ms));
    co_return co_await forty + co_await two;
  });
  say("40 after 200 ms and 2 after 100 ms, together: " + std::to_string(sum));
}

// ------------------------------------------------------------------ 2

task<> nap(const char* who, weir::duration length) {
  const witness w(who);
  co_await weir::sleep(length);
}

// When the limit is reached, the frames below it are destroyed, innermost first. The error comes
// out only after everything below has ended.
task<> a_timeout_ends_what_is_below_it() {
  chapter("2. A timeout ends what is below it");
  try {
    co_await weir::with_timeout(50ms, nap("a nap of an hour", 1h));
  } catch (const weir::timeout_error& e) {
    say(e.what());
  }
}

// ------------------------------------------------------------------ 3

task<> fail_after(weir::duration delay, const char* what) {
  co_await weir::sleep(delay);
  throw std::runtime_error(what);
}

// One child fails: the other is cancelled and joined, and the error leaves the scope unchanged. The
// future outlives the scope and keeps the reason: who cancelled, when, and why.
task<> a_failing_child_cancels_its_sibling() {
  chapter("3. A failing child cancels its sibling, and says why");
  weir::future<void> download;
  try {
    co_await weir::with_scope({.name = "sync"}, [&](weir::scope& s) -> task<> {
      download = s.spawn(nap("download", 1h), {.name = "download"});
      s.spawn(fail_after(20ms, "disk full"), {.name = "upload"});
      co_await s.join();
    });
  } catch (const std::runtime_error& e) {
    say(std::string("the scope throws the error of upload: ") + e.what());
  }
  std::ostringstream why;
  weir::why(why, download);
  show(why.str());
}

// ------------------------------------------------------------------ 4

task<> heartbeat() {
  const witness w("the heartbeat service");
  for (;;) co_await weir::sleep(1s);
}

// Defers and services form one stack: last registered, first ended, after the children. Cleanup may
// await, although the scope is cancelled.
task<> cleanup_runs_in_order() {
  chapter("4. Cleanup runs in order, and may wait");
  const auto how = co_await weir::settle(weir::with_scope([](weir::scope& s) -> task<> {
    s.defer([] { say("first defer: the connection is closed"); });
    s.background(heartbeat(), {.name = "heartbeat"});
    s.defer([](const weir::outcome_view& end) -> task<> {
      say(end.is_cancelled() ? "last defer: flushes, because " + end.reason().message : "");
      co_await weir::sleep(30ms);
      say("last defer: flushed");
    });
    s.spawn(nap("a child", 1h));
    const witness body("the body");
    co_await weir::sleep(10ms);
    s.cancel("maintenance");
    co_await weir::sleep(1h);
  }));
  say(how.is_cancelled() ? "the scope is over" : "not cancelled?");
}

// ------------------------------------------------------------------ 5

task<> print_page(weir::counting_governor& printer) {
  const weir::permit held = co_await printer.acquire();
  co_await weir::sleep(1ms);
}

// A race over waits starts no fiber and allocates nothing. The loser is withdrawn in the instant in
// which the winner completes, so a permit is delivered or still in its governor, not lost.
task<> a_race_loses_nothing() {
  chapter("5. A race over waits loses nothing");
  weir::counting_governor printer(1, {.name = "printer"});
  int granted = 0;
  auto body = [&](weir::scope& s) -> task<> {
    for (int round = 0; round < 1000; ++round) {
      s.spawn(print_page(printer));
      co_await weir::yield();  // now the page has the permit, for 1 ms
      const auto patience = round % 2 == 0 ? 1ms : 2ms;
      auto first = co_await weir::race(printer.acquire(), weir::sleep(patience));
      if (first.index() == 0) ++granted;
    }
  };
  co_await weir::with_scope(body);
  say("500 races in which permit and limit came in the same instant, 500 with more patience");
  say("won by the permit: " + std::to_string(granted) +
      ", by the limit: " + std::to_string(1000 - granted));
  say("permits in the governor afterwards: " + std::to_string(printer.available()) + " of 1");
}

// ------------------------------------------------------------------ 6

task<std::string> read_file(const char* path) {
  co_await weir::sleep(5ms);
  throw std::runtime_error(std::string("cannot read ") + path);
}

task<int> parse_port(const char* path) {
  const std::string text = co_await read_file(path);
  co_return std::stoi(text);
}

// An error of any type collects the awaits that it passes through, when it is thrown.
task<> an_error_knows_its_way() {
  chapter("6. An error knows which awaits it came through");
  try {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto port = s.spawn(parse_port("server.conf"), {.name = "config"});
      (void)co_await port;
    });
  } catch (...) {
    show(weir::describe(std::current_exception()));
  }
}

// ------------------------------------------------------------------ 7

task<> query(weir::counting_governor& database) {
  const weir::permit held = co_await database.acquire();
  co_await weir::sleep(1h);
}

task<> handle_request(weir::counting_governor& database) {
  co_await weir::with_timeout(2h, query(database));
}

// The tree of everything that runs, at any time and from any thread: its owner, what it waits
// for, and on which line.
task<> a_live_tree_can_be_printed() {
  chapter("7. The live tree can be printed at any time");
  weir::counting_governor database(1, {.name = "database"});
  auto server = [&](weir::scope& s) -> task<> {
    s.background(heartbeat(), {.name = "heartbeat"});
    auto first = s.spawn(handle_request(database), {.name = "request 1"});
    auto second = s.spawn(handle_request(database), {.name = "request 2"});
    auto report = s.spawn([&]() -> task<> { co_await second; }, {.name = "report"});
    co_await weir::sleep(1500ms);
    std::ostringstream tree;
    weir::dump(tree);
    show(tree.str());
    report.cancel("seen enough");
    first.cancel();
    second.cancel();
  };
  co_await weir::with_scope({.name = "server"}, server);
}

// ------------------------------------------------------------------ all of them

task<> tour() {
  co_await a_scope_owns_its_children();
  co_await a_timeout_ends_what_is_below_it();
  co_await a_failing_child_cancels_its_sibling();
  co_await cleanup_runs_in_order();
  co_await a_race_loses_nothing();
  co_await an_error_knows_its_way();
  co_await a_live_tree_can_be_printed();
}

}  // namespace

int main() {
  std::puts("A tour of weir, on virtual time. The source is examples/01_tour.cpp.");
  weir::sim::run({}, tour());
  const weir::live_counts left = weir::live();
  std::printf("\nLeft over at the end: %lld scopes, %lld fibers, %lld timers\n",
              static_cast<long long>(left.scopes), static_cast<long long>(left.fibers),
              static_cast<long long>(left.timers));
}
