// SPDX-License-Identifier: MIT
// A handler is run without a crash, then repeatedly with a crash in each of its steps: its result
// must be the same, and no step may run again once its result was recorded.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "durable/support/stage.hpp"

namespace durable_test {

// ------------------------------------------------- operations that handlers of these tests are of

/// A step that leaves its name in the ledger: the crash points are here.
inline task<int> give(std::string name, int value) {
  co_return co_await weir::step(name, [&] {
    effect(name);
    return value;
  });
}

/// A value after a while; a journaled source without a step.
inline task<int> nap(weir::duration d, int value) {
  co_await weir::sleep(d);
  co_return value;
}

inline task<int> give_after(weir::duration d, std::string name, int value) {
  co_await weir::sleep(d);
  co_return co_await give(std::move(name), value);
}

inline task<int> fail_after(weir::duration d, std::string what) {
  co_await weir::sleep(d);
  throw weir::terminal_error(what);
}

/// A step that ends with an error that is not tried again.
inline task<int> failing_step(std::string name) {
  co_return co_await weir::step(name, [&]() -> int {
    effect(name);
    throw weir::terminal_error(name + " failed");
  });
}

inline std::string text(const std::vector<int>& values) {
  std::string all;
  for (const int v : values) all += (all.empty() ? "" : ",") + std::to_string(v);
  return all;
}

template <class... Values>
std::string row(const Values&... values) {
  return text(std::vector<int>{static_cast<int>(values)...});
}

/// Tasks as a range; braces are not for co_await expressions (g++-12).
template <class... Tasks>
std::vector<task<int>> tasks(Tasks... each) {
  std::vector<task<int>> all;
  (all.push_back(std::move(each)), ...);
  return all;
}

/// The part if the error says it, else everything that it says.
inline std::string said(const std::exception& e, const std::string& part) {
  const std::string what = e.what();
  return test_support::contains(what, part) ? part : "other: " + what;
}

// ------------------------------------------------------------------------------------- the crashes

/// When, after the first, the further lives begin: at the same wall time (every timer is still to
/// come) and when all timers of the handler are overdue. A handler whose result depends on what is
/// faster, a timer or a step, has only the first.
using births = std::vector<weir::duration>;
inline const births at_once_and_late{0ns, 100h};
inline const births at_once{0ns};
/// When the first one died: no timer is early or late, so that the order of timers counts, too.
inline constexpr weir::duration at_death{-1};
inline const births when_it_died{at_death};

/// Whether steps may be in flight when another one dies; then they may run twice, too.
enum class steps { one_at_a_time, concurrent };

inline lines sorted(lines all) {
  std::sort(all.begin(), all.end());
  return all;
}

/// Every line of `some` as often in `all`, at least.
inline bool includes(lines all, lines some) {
  all = sorted(std::move(all));
  some = sorted(std::move(some));
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

inline void check_effects(const lines& straight, const std::string& repeated, steps kind) {
  lines expected = straight;
  expected.push_back(repeated);
  if (kind == steps::one_at_a_time) {
    EXPECT_EQ(sorted(ledger()), sorted(expected));
  } else {
    lines twice = straight;
    twice.insert(twice.end(), straight.begin(), straight.end());
    EXPECT_TRUE(includes(ledger(), expected)) << test_support::joined(ledger());
    EXPECT_TRUE(includes(twice, ledger())) << test_support::joined(ledger());
  }
}

/// Dies in effect `k`, then lives to the end.
inline void one_crash(const installer& handler, const std::string& want, const lines& straight,
                      long k, weir::duration later, steps kind) {
  const stage on;
  EXPECT_EQ(life([&] {
              plan = {.at = k};
              (void)ending_of_h(on, handler, 0ns);
            }),
            crashed);
  const lines first = ledger();
  if (first.empty()) return;
  whole_life([&] { EXPECT_EQ(ending_of_h(on, handler, later), want); });
  check_effects(straight, first.back(), kind);
}

/// Every life but the last gets one step further.
inline void short_lives(const installer& handler, const std::string& want, long effects) {
  const stage on;
  int code = crashed;
  long lives = 0;
  for (; code == crashed && lives <= effects + 1; ++lives) {
    code = life([&] {
      plan = {.at = lives == 0 ? 0 : 1};
      EXPECT_EQ(ending_of_h(on, handler, 0ns), want);
    });
  }
  EXPECT_EQ(code, 0) << "after " << lives << " lives for " << effects << " effects";
}

inline void all_crashes(const installer& handler, const std::string& want, const births& born,
                        steps kind) {
  lines straight;
  std::vector<weir::duration> times;
  {
    const stage on;
    plan = {};
    EXPECT_EQ(ending_of_h(on, handler, 0ns), want);
    straight = ledger();
    times = plan.times;
  }
  const long effects = static_cast<long>(straight.size());
  for (const weir::duration later : born) {
    for (long k = 0; k < effects; ++k) {
      SCOPED_TRACE("a crash in effect " + std::to_string(k) + ", the next life " +
                   std::to_string(later / 1h) + " h later");
      const weir::duration birth =
          later == at_death ? times.at(static_cast<std::size_t>(k)) : later;
      one_crash(handler, want, straight, k, birth, kind);
      if (testing::Test::HasFailure()) return;
    }
    // When everything is overdue steps run at once, and none is recorded before the next dies.
    if (later != 0ns || effects < 2 || kind == steps::concurrent) continue;
    SCOPED_TRACE("short lives");
    short_lives(handler, want, effects);
  }
}

/// The handler, a callable `task<std::string>(int)`, ends with `want`: straight, with a crash in
/// each of its steps, and when every life dies in the step after the one it got further.
template <class H>
void survives(H handler, const std::string& want, const births& born = at_once_and_late,
              steps kind = steps::one_at_a_time) {
  all_crashes(as_h(handler), want, born, kind);
}

}  // namespace durable_test
