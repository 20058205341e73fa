// SPDX-License-Identifier: MIT
// A stage for durable runs: a temporary directory with a journal, a ledger of side effects beside
// it that outlives processes, and lives: child processes that may die in the middle.
//
// Engines on real files run here in simulation only (their I/O is inline, their time virtual); what
// needs real time or threads does it in a life, so that the process of the test has no threads that
// a fork would lose.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "support/test_support.hpp"

namespace durable_test {

using namespace std::chrono_literals;
using test_support::code_after;
using weir::errc;
using weir::task;
namespace durable = weir::durable;
namespace sim = weir::sim;

using lines = std::vector<std::string>;

/// When the first process of a test is born.
inline const weir::wall_time day0 = std::chrono::sys_days(std::chrono::year(2030) / 1 / 1);
/// The smallest that is allowed: every engine writes its first segment in full.
inline constexpr std::int64_t smallest_segment = 64 * 1024;

class stage {
 public:
  stage() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir_durable_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    root_ = pattern;
    journal_ = root_ + "/journal";
    outer_ = std::exchange(current, this);
  }
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage() {
    current = outer_;
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const noexcept { return root_; }
  const std::string& journal() const noexcept { return journal_; }
  std::string ledger() const { return root_ + "/ledger"; }

  /// The one that is alive; what handlers note goes to its ledger.
  static inline stage* current = nullptr;

 private:
  std::string root_;
  std::string journal_;
  stage* outer_ = nullptr;
};

/// Adds a line to the ledger at once: it is there even if the process dies now.
inline void note(const std::string& line) {
  const int file =
      ::open(stage::current->ledger().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::perror("ledger");
    std::abort();
  }
  ::close(file);
}

inline lines ledger() {
  lines all;
  std::ifstream in(stage::current->ledger());
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

inline long times(std::string_view line) {
  const lines all = ledger();
  return static_cast<long>(std::count(all.begin(), all.end(), line));
}

/// The lines with this prefix, without it.
inline lines noted(std::string_view prefix) {
  lines found;
  for (const std::string& line : ledger()) {
    if (line.starts_with(prefix)) found.push_back(line.substr(prefix.size()));
  }
  return found;
}

// ------------------------------------------------------------------------------ lives and crashes

/// What a life ends with that dies as planned.
inline constexpr int crashed = 42;

/// Where this process dies.
struct crash_plan {
  long at = -1;                         // the number of the effect, counted from 0
  std::string in{};                     // or the effect of this name
  long seen = 0;                        // effects so far
  std::vector<weir::duration> times{};  // of each of them, after day0
};
inline crash_plan plan;

/// What a step does to the world: it is in the ledger; then, perhaps, the process dies.
inline void effect(const std::string& what) {
  note(what);
  plan.times.push_back(weir::wall_now() - day0);
  if (plan.seen++ == plan.at || plan.in == what) ::_exit(crashed);
}

inline int parts_of_this_test() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

/// Runs `f` in a child process. Returns 0 if it came to its end without a failed check, `crashed`
/// if it died as planned, the number of a signal above 1000.
inline int life(const std::function<void()>& f) {
  std::fflush(nullptr);
  const int parts = parts_of_this_test();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int code = 0;
    try {
      f();
      code = parts_of_this_test() == parts ? 0 : 1;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in a life: %s\n", e.what());
      code = 2;
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw std::runtime_error("fork");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// A life that dies in the effect of this name.
inline void life_that_dies_in(const std::string& name, const std::function<void()>& f) {
  EXPECT_EQ(life([&] {
              plan = {.in = name};
              f();
            }),
            crashed);
}

/// A life that comes to its end; its failed checks are printed by itself.
inline void whole_life(const std::function<void()>& f) { EXPECT_EQ(life(f), 0); }

// ---------------------------------------------------------------------------------------- engines

/// Refers to the stage.
inline durable::engine_options options_for(const stage& on) {
  durable::engine_options options;
  options.path = on.journal();
  options.sync = durable::sync::never_for_tests;
  options.segment_bytes = smallest_segment;
  options.report_blocked = false;
  // Some tests write a journal in real time and open it in virtual time, which is years later.
  options.retention = weir::duration::max();
  return options;
}

/// The same on the disk of a simulated machine.
inline durable::engine_options on_disk(sim::world& w) {
  durable::engine_options options;
  options.path = "/journal";
  options.segment_bytes = smallest_segment;
  options.disk = &w.disk();
  return options;
}

/// What adds the handlers of a test to an engine, and what uses it once it is open.
using installer = std::function<void(durable::engine&)>;
using user = std::function<task<>(durable::engine&)>;

inline task<> with_open_engine(durable::engine_options options, installer setup, user use) {
  auto body = [&](durable::engine& e) -> task<> {
    setup(e);
    co_await e.open();
    co_await use(e);
  };
  co_await durable::with_engine(options, body);
}

/// The same in a simulated process that is born `later` after day0.
inline void session(const stage& on, installer setup, user use, weir::duration later = 0ns) {
  sim::run({.seed = 1, .start_time = day0 + later},
           with_open_engine(options_for(on), std::move(setup), std::move(use)));
}

/// Adds the handler under the name "h".
template <class H>
installer as_h(H handler) {
  return [handler](durable::engine& e) { e.add("h", handler); };
}

/// The same, and another one as "child".
template <class H, class C>
installer with_child(H handler, C child) {
  return [handler, child](durable::engine& e) {
    e.add("h", handler);
    e.add("child", child);
  };
}

/// A session with one handler, "h".
template <class H>
void session_of(const stage& on, H handler, user use, weir::duration later = 0ns) {
  session(on, as_h(handler), std::move(use), later);
}

/// A handler that asks for a text and gives it back; the ledger has the id of the question.
inline task<std::string> asks(int) {
  auto answer = weir::awakeable<std::string>("answer");
  co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
  co_return co_await answer.wait();
}

inline task<int> twice(int n) {
  const int v = co_await weir::step("double", [&] { return n * 2; });
  co_return v;
}

/// In one fiber a step of two hours that cannot be cancelled, in another a signal after one hour.
inline task<std::string> hears_during_a_step(int) {
  auto slow = []() -> task<int> {
    auto body = []() -> task<int> {
      co_await weir::shield(weir::sleep(2h));
      co_return 1;
    };
    co_return co_await weir::step("slow", body);
  };
  auto hears = []() -> task<int> {
    co_await weir::sleep(1h);
    co_return co_await weir::signal<int>("x").wait();
  };
  auto [a, b] = co_await weir::all(slow(), hears());
  co_return std::to_string(a) + " " + std::to_string(b);
}

inline task<int> gives_its_input(int n) { co_return n; }

/// Waits (in virtual time) until something is true, at most about a virtual hour.
inline task<> until(std::function<bool()> is_true) {
  for (int i = 0; i < 3'600'000 && !is_true(); ++i) co_await weir::sleep(1ms);
  EXPECT_TRUE(is_true());
}

/// Waits until the ledger has the line.
inline task<> until_noted(std::string line) {
  co_await until([&] { return times(line) > 0; });
}

/// Waits until the ledger has `count` lines with the prefix and gives the last without it.
inline task<std::string> last_noted(std::string prefix, std::size_t count = 1) {
  co_await until([&] { return noted(prefix).size() >= count; });
  const lines found = noted(prefix);
  co_return found.empty() ? "" : found.back();
}

/// How a run ended, as text: its value, "cancelled", or "failed: " and the message.
template <class R>
task<std::string> ending_of(R run) {
  try {
    co_return co_await run.result();
  } catch (const weir::cancelled_error&) {
    co_return "cancelled";
  } catch (const std::exception& e) {
    co_return std::string("failed: ") + e.what();
  }
}

/// Starts, or attaches to, run "r" of handler "h" (its input is 1) and gives its ending.
inline std::string ending_of_h(const stage& on, const installer& setup, weir::duration later) {
  std::string end;
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    end = co_await ending_of(run);
  };
  session(on, setup, use, later);
  return end;
}

template <class H>
std::string ending(const stage& on, H handler, weir::duration later = 0ns) {
  return ending_of_h(on, as_h(handler), later);
}

/// In a life with the wrong handlers run "r" is blocked, says all of this, and nothing more happens
/// to it.
inline void expect_blocked(const stage& on, const installer& wrong, const lines& says) {
  const lines before = ledger();
  whole_life([&] {
    auto use = [&](durable::engine& e) -> task<> {
      co_await weir::sleep(10h);
      const auto info = e.get("r");
      EXPECT_TRUE(info.has_value());
      if (!info) co_return;
      EXPECT_EQ(info->state, durable::run_state::blocked);
      for (const std::string& part : says) {
        EXPECT_TRUE(test_support::contains(info->message, part))
            << part << " in: " << info->message;
      }
      EXPECT_EQ(e.list({.state = durable::run_state::blocked}).size(), 1u);
    };
    session(on, wrong, use, 2h);
  });
  EXPECT_EQ(ledger(), before);
}

}  // namespace durable_test
