// SPDX-License-Identifier: MIT
// The upgrade drill, with processes in real time that are killed by SIGKILL: runs are started with
// version 1, continued by a program that has versions 1 and 2, then met by one that lacks version
// 1, which forks them into version 2, and ended at last by one that has both.
#include <csignal>

#include "durable/support/stage.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

constexpr int drill_runs = 12;

int drill_pipe = -1;  // to the test; every line of the ledger is a byte

void drill_note(const std::string& line) {
  note(line);
  if (drill_pipe >= 0 && ::write(drill_pipe, "x", 1) != 1) ::_exit(3);
}

std::string drill_id(int n) { return "r" + std::to_string(n); }

task<std::string> order_one(int n) {
  co_await weir::step("reserve", [&] { drill_note("reserve " + std::to_string(n)); });
  const int said = co_await weir::signal<int>("go").wait();
  co_await weir::step("ship", [&] { drill_note("ship " + std::to_string(n)); });
  co_return "v1 " + std::to_string(said);
}

/// Reserves as before, but does not wait.
task<std::string> order_two(int n) {
  co_await weir::step("reserve", [&] { drill_note("reserve " + std::to_string(n)); });
  co_await weir::step("ship by air", [&] { drill_note("air " + std::to_string(n)); });
  co_return "v2";
}

using drill_part = std::function<task<>(durable::engine&)>;

/// A process with these versions; it is killed after so many lines, 0: it ends by itself.
void drill_process(const stage& on, bool one, bool two, int lines_until_death, drill_part part) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::close(ends[0]);
    drill_pipe = ends[1];
    const std::string log = on.root() + "/stderr";
    if (std::freopen(log.c_str(), "a", stderr) == nullptr) ::_exit(4);
    int code = 0;
    try {
      durable::engine_options options;
      options.path = on.journal();
      options.segment_bytes = smallest_segment;
      auto body = [&](durable::engine& e) -> task<> {
        if (one) e.add("order", order_one);
        if (two) e.add("order", order_two, {.version = 2});
        co_await e.open();
        co_await part(e);
      };
      weir::run(durable::with_engine(options, body));
      code = parts_of_this_test() == 0 ? 0 : 1;
    } catch (const std::exception& e) {
      std::printf("in a process of the drill: %s\n", e.what());
      code = 2;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  ::close(ends[1]);
  char byte = 0;
  for (int i = 0; lines_until_death == 0 || i < lines_until_death; ++i)
    if (::read(ends[0], &byte, 1) != 1) break;
  if (lines_until_death != 0) ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ends[0]);
  if (lines_until_death == 0) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  } else {
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
  }
}

task<> start_orders(durable::engine& e) {
  for (int n = 0; n < drill_runs; ++n) {
    const std::string id = drill_id(n);
    (void)co_await e.start<std::string>("order", {.id = id}, n);
  }
}

task<> never_ends(durable::engine& e) {
  co_await start_orders(e);
  co_await weir::sleep(1h);
}

std::string stderr_of(const stage& on) {
  std::ifstream in(on.root() + "/stderr");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The old runs are blocked, listed and reported; one of them is forked.
task<> meet_old_runs(durable::engine& e) {
  const auto under_way = [&] {
    return e.list({.state = run_state::running}).size() +
           e.list({.state = run_state::suspended}).size();
  };
  for (int i = 0; i < 10'000 && under_way() > 0; ++i) co_await weir::sleep(1ms);
  int old = 0;
  for (const durable::run_info& info : e.list()) {
    if (info.version == 2) continue;
    ++old;
    EXPECT_TRUE(info.state == run_state::blocked || info.state == run_state::completed) << info.id;
    if (info.state == run_state::completed) continue;
    EXPECT_TRUE(test_support::contains(info.message, "no handler 'order' of version 1"))
        << info.message;
  }
  EXPECT_GT(old, 0);
  const auto blocked = e.list({.state = run_state::blocked});
  EXPECT_FALSE(blocked.empty());
  if (blocked.empty()) co_return;
  const std::string origin = blocked.front().id;
  const std::string forked = co_await e.fork(origin, 1, {.id = "forked"});
  auto run = co_await e.start<std::string>("order", {.id = forked}, 99);
  EXPECT_EQ(co_await run.result(), "v2");
  EXPECT_EQ(e.get(origin)->state, run_state::blocked);
  drill_note("forked " + origin);
}

task<> end_all(durable::engine& e) {
  for (const durable::run_info& info : e.list()) {
    if (info.state == run_state::completed) continue;
    (void)co_await e.signal(info.id, "go", 2);
    auto run = co_await e.start<std::string>("order", {.id = info.id}, 0);
    const std::string said = co_await run.result();
    // The process before may have been killed after its signal, but before this run ended.
    const std::string one = said == "v1 1" ? "v1 1" : "v1 2";
    EXPECT_EQ(said, info.version == 1 ? one : "v2") << info.id;
  }
}

}  // namespace

TEST(durable_upgrade, drill_loses_no_run_and_repeats_no_recorded_step) {
  const stage on;
  drill_process(on, true, false, drill_runs / 2, never_ends);
  drill_process(on, true, true, drill_runs, [](durable::engine& e) -> task<> {
    co_await start_orders(e);  // those that are not there yet are of version 2
    for (int n = 0; n < drill_runs; n += 3) (void)co_await e.signal(drill_id(n), "go", 1);
    co_await weir::sleep(1h);
  });
  drill_process(on, false, true, 0, meet_old_runs);
  EXPECT_TRUE(test_support::contains(stderr_of(on), "of handler 'order' is blocked: no handler"))
      << stderr_of(on);
  drill_process(on, true, true, 0, end_all);
  const lines forked = noted("forked r");
  ASSERT_EQ(forked.size(), 1u);
  EXPECT_EQ(times("air " + forked.front()), 1);
  // A process that is killed may repeat the step that was under way, once.
  for (int n = 0; n < drill_runs; ++n) {
    EXPECT_GE(times("reserve " + std::to_string(n)), 1) << n;
    EXPECT_LE(times("reserve " + std::to_string(n)), 3) << n;
  }
}
