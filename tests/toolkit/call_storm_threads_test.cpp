// SPDX-License-Identifier: MIT
// Storms of `on` between real loops, some of which end meanwhile, and of `blocking` with more calls
// than threads. Every call has one answer, and nothing is left of any.
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "toolkit/blocking_pool.hpp"
#include "toolkit/remote_promises.hpp"
#include "toolkit_support.hpp"

using namespace weir_test;
using pool_promises::draw;

namespace {

std::atomic<int> letters{0};  // alive; of calls that may be abandoned, which capture nothing
std::atomic<int> letters_read{0};

/// A value that a call owns.
class letter {
 public:
  letter() { ++letters; }
  letter(letter&& other) noexcept : full(std::exchange(other.full, false)) { ++letters; }
  letter& operator=(letter&&) = delete;
  ~letter() { --letters; }
  bool full = true;
};

letter read_letter(letter l) {
  ++letters_read;
  return l;
}

}  // namespace

TEST(call_storm, travellers_between_three_loops_come_home_or_are_cancelled) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      const weir::loop_thread a(s, {.name = "a"});
      const weir::loop_thread b(s, {.name = "b"});
      const std::vector<weir::loop_ref> loops{a, b, weir::this_loop()};
      for (int round = 0; round < 40; ++round) co_await pool_promises::come_home(loops, 12);
    });
  });
}

TEST(call_storm, loops_that_end_tell_the_callers_on_all_other_loops) {
  std::atomic<int> alive{0}, answers{0}, gone{0};
  constexpr int rounds = 40;
  constexpr int calls = 12;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      const weir::loop_thread near(s, {.name = "near"});
      const auto remote = [&]() -> task<> {
        ++alive;
        const auto ended = weir::scope_exit([&] { --alive; });
        co_await weir::sleep(draw(4) == 0 ? weir::duration(1h) : weir::duration(0));
      };
      for (int round = 0; round < rounds; ++round) {
        co_await weir::with_scope([&](weir::scope& callers) -> task<> {
          co_await weir::with_loop_thread([&](weir::loop_thread& t) -> task<> {
            const auto call = [&, there = weir::loop_ref(t)]() -> task<> {
              const std::exception_ptr error = co_await error_of(weir::on(there, remote));
              EXPECT_TRUE(!error || code_of(error) == errc::loop_gone);
              gone += error ? 1 : 0;
              ++answers;
            };
            for (int i = 0; i < calls; ++i) {
              if (i % 2 == 0) callers.spawn(call);
              if (i % 2 == 1) callers.spawn_on(near, call);
            }
            for (int i = draw(20); i > 0; --i) co_await weir::yield();
          });
          co_await callers.join();
        });
        EXPECT_EQ(alive, 0);
      }
    });
  });
  EXPECT_EQ(answers, rounds * calls);
  EXPECT_GT(gone, 0);
}

namespace {

/// On each of `loops` threads a loop with `calls` callers, and one in `odds` steps cancels one.
template <class Caller>
void storm_of(int loops, int calls, int odds, const Caller& caller) {
  const auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < calls; ++i) {
        all.push_back(s.spawn(caller));
        if (draw(8) == 0) co_await weir::yield();
        if (draw(odds) == 0) all[static_cast<std::size_t>(draw(i + 1))].cancel();
      }
      co_await s.join();
    });
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < loops; ++i) threads.emplace_back([&] { weir::run(program); });
  for (std::thread& t : threads) t.join();
}

}  // namespace

TEST(call_storm, blocking_calls_of_many_loops_are_made_once_or_removed) {
  constexpr int loops = 3;
  constexpr int calls = 300;
  job_book b(64, loops * calls, loops * calls);
  const auto caller = [&] { return one_blocking_call(b); };
  storm_of(loops, calls, 3, caller);
  EXPECT_EQ(b.wrong(), nullptr) << b.wrong();
  EXPECT_EQ(b.begun(), b.ended());
  EXPECT_EQ(b.gone(), b.opened());
}

TEST(call_storm, more_calls_than_threads_wait_for_each_other_and_are_removed_or_made) {
  constexpr int waiting = 100;
  job_book b(64, 1000, waiting);
  std::latch gate(1);
  std::atomic<int> inside{0};
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 64; ++i)
        s.spawn(weir::blocking([&] {
          ++inside;
          gate.wait();
        }));
      co_await wait_until([&] { return inside == 64; });
      std::vector<weir::child<int>> all;
      for (int i = 0; i < waiting; ++i) {
        auto fn = plain_job(b, b.open());
        all.push_back(s.spawn(weir::blocking(std::move(fn))));
      }
      co_await weir::yield();
      for (std::size_t i = 0; i < waiting; i += 3) {
        all[i].cancel();
        EXPECT_TRUE((co_await weir::settle(all[i])).is_cancelled());
        EXPECT_EQ(b.gone(static_cast<int>(i)), 1);
      }
      EXPECT_EQ(b.begun(), 0);
      gate.count_down();
      for (std::size_t i = 1; i < waiting; i += 3) all[i].cancel();  // while the others begin
      for (std::size_t i = 2; i < waiting; i += 3) EXPECT_EQ(co_await all[i], static_cast<int>(i));
      co_await s.join();
    });
  });
  EXPECT_EQ(b.wrong(), nullptr) << b.wrong();
  EXPECT_EQ(b.begun(), b.ended());
  EXPECT_EQ(b.gone(), waiting);
}

TEST(call_storm, threads_that_end_when_they_are_idle_lose_no_call) {
  auto& threads = weir::detail::blocking_pool::instance();
  threads.set_idle_limit(1us);
  constexpr int loops = 3;
  constexpr int calls = 200;
  std::atomic<int> made{0};
  const auto program = [&]() -> task<> {
    for (int i = 0; i < calls; ++i) {
      EXPECT_EQ(co_await weir::blocking([&] { return ++made, i; }), i);
      for (int n = draw(4); n > 0; --n) co_await weir::sleep(1us);
    }
  };
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> all;
    for (int i = 0; i < loops; ++i) all.emplace_back([&] { weir::run(program); });
    for (std::thread& t : all) t.join();
    while (threads.threads() != 0) std::this_thread::yield();  // all have ended
  }
  EXPECT_EQ(made, 2 * loops * calls);
  threads.set_idle_limit(5s);
}

TEST(call_storm, calls_that_may_be_abandoned_leave_nothing) {
  constexpr int loops = 3;
  constexpr int calls = 200;
  std::atomic<int> delivered{0}, wrong{0};
  const auto caller = [&]() -> task<> {
    const letter got = co_await weir::blocking(weir::may_abandon, read_letter, letter());
    ++delivered;
    wrong += got.full ? 0 : 1;
  };
  storm_of(loops, calls, 2, caller);
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(delivered, letters_read);
  while (letters != 0) std::this_thread::yield();  // threads finish what was abandoned
}
