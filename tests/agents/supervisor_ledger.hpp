// SPDX-License-Identifier: MIT
// For tests of supervisors whose children live on several loops: agents that count their lives and
// crashes in a ledger any thread may write to, callers that count the answers, and the rules that
// the numbers must follow in the end.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "supervisor_support.hpp"

namespace supervisor_test {

inline constexpr std::size_t crew_size = 4;

struct ledger {
  std::array<std::atomic<int>, crew_size> starts{};
  std::array<std::atomic<int>, crew_size> crashes{};
  std::array<std::atomic<int>, crew_size> alive{};
  std::atomic<int> overlaps{0};
  std::atomic<int> strangers{0};  // whatever ran on a loop that is not the child's

  int all_crashes() const {
    int n = 0;
    for (const auto& c : crashes) n += c;
    return n;
  }
};

/// Crashes on every fourth number.
class hand {
 public:
  hand(ledger* book, std::size_t id, weir::loop_ref home) : book_(book), id_(id), home_(home) {
    check_loop();
    ++book_->starts[id_];
    if (++book_->alive[id_] != 1) ++book_->overlaps;
  }
  hand(const hand&) = delete;
  hand& operator=(const hand&) = delete;
  ~hand() {
    check_loop();
    --book_->alive[id_];
  }
  task<int> work(int n) {
    check_loop();
    co_await weir::yield();
    if (n % 4 == 0) {
      ++book_->crashes[id_];
      throw boom(n);
    }
    co_await weir::yield();
    check_loop();
    co_return n;
  }
  void crash() {
    ++book_->crashes[id_];
    throw boom(0);
  }

 private:
  void check_loop() const {
    if (!(weir::this_loop() == home_)) ++book_->strangers;
  }
  ledger* book_;
  std::size_t id_;
  weir::loop_ref home_;
};
using hand_ref = weir::agent_ref<hand>;
using crew = std::vector<hand_ref>;

/// How calls were answered.
struct answer_counts {
  std::atomic<int> values{0};
  std::atomic<int> own_errors{0};
  std::atomic<int> restarted{0};
  std::atomic<int> ended{0};  // stopped or crashed
  std::atomic<int> wrong{0};
  int all() const { return values + own_errors + restarted + ended + wrong; }
};

inline task<> call_once(hand_ref whom, int n, answer_counts& answers) {
  try {
    const int got = co_await whom.call(&hand::work, n);
    ++(got == n && n % 4 != 0 ? answers.values : answers.wrong);
  } catch (const weir::agent_error& e) {
    const bool ended = e.code() == errc::agent_stopped || e.code() == errc::agent_crashed;
    ++(ended                               ? answers.ended
       : e.code() == errc::agent_restarted ? answers.restarted
                                           : answers.wrong);
  } catch (const boom& e) {
    ++(e.n == n && n % 4 == 0 ? answers.own_errors : answers.wrong);
  }
}

/// Four children, the first on the first loop, ...; an error of a handler crashes them.
inline crew add_crew(weir::supervisor& sup, ledger& book,
                     const std::vector<weir::loop_ref>& loops) {
  crew all;
  for (std::size_t i = 0; i < crew_size; ++i) {
    const std::string name = "hand" + std::to_string(i);
    auto o = kid(name);
    o.on = loops[i % loops.size()];
    o.on_error = weir::on_error::crash;
    all.push_back(sup.add<hand>(o, &book, i, loops[i % loops.size()]));
  }
  return all;
}

/// What must be true when everybody has come to rest: starts and crashes fit the strategy. In a
/// group that is restarted again before it is complete, the later ones are not constructed.
inline void check_book(weir::supervisor& sup, const ledger& book, strategy how) {
  EXPECT_EQ(book.overlaps, 0);
  EXPECT_EQ(book.strangers, 0);
  int crashes = 0;  // of this one and those before it
  for (std::size_t i = 0; i < crew_size; ++i) {
    EXPECT_EQ(book.alive[i], 1);
    crashes += book.crashes[i];
    const long restarts = restarts_of(sup, "hand" + std::to_string(i));
    if (how == strategy::one_for_one || how == strategy::dynamic) {
      EXPECT_EQ(book.starts[i], 1 + book.crashes[i]);
      EXPECT_EQ(restarts, book.crashes[i]);
    } else {
      const bool restarted = how == strategy::one_for_all ? book.all_crashes() > 0 : crashes > 0;
      EXPECT_GE(book.starts[i], restarted ? 2 : 1);
      EXPECT_LE(book.starts[i], 1 + (how == strategy::one_for_all ? book.all_crashes() : crashes));
      EXPECT_GE(restarts, book.starts[i] - 1);
    }
  }
}

}  // namespace supervisor_test
