// SPDX-License-Identifier: MIT
// Pools under storms of real threads: everybody submits in every way, is cancelled, runs out of
// time, and the pool is closed or cancelled meanwhile. All jobs are accounted for; nothing depends
// on how fast anything is.
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "pool_support.hpp"
#include "toolkit/job_book.hpp"

using namespace weir_test;

namespace {

/// What somebody who submitted a job knows of it.
enum class fate {
  withdrawn,  // was cancelled and heard nothing
  accepted,
  refused,    // the pool was full or closed
  late,       // no room in time
  answered,   // the value or the error of its own job
  cancelled,  // the pool was
  wrong,
};

/// Small random numbers; splitmix64.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15) {}
  int operator()(int n) {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int>((z ^ (z >> 31)) % static_cast<unsigned>(n));
  }

 private:
  std::uint64_t state_;
};

struct storm {
  storm(int workers, int queue, int jobs)
      : size(workers),
        book(workers, workers + queue, jobs),
        fates(static_cast<std::size_t>(jobs), fate::withdrawn) {}
  fate& of(int id) { return fates[static_cast<std::size_t>(id)]; }

  int size;
  job_book book;
  std::vector<fate> fates;
};

fate fate_of(int id, const std::exception_ptr& error, fate otherwise) {
  if (!error) return otherwise;
  if (failed_job(error) == id) return fate::answered;
  const std::error_code code = error_code(error);
  if (code == errc::pool_closed || code == errc::pool_full) return fate::refused;
  if (code == errc::timeout) return fate::late;
  if (code == errc::cancelled) return fate::cancelled;
  return fate::wrong;
}

/// A job of any kind for `use`, which takes it.
template <class F>
auto with_job(storm& s, int id, int kind, F use) {
  const ends how = kind == 0 ? ends::badly : ends::well;
  return kind % 2 == 0 ? use(plain_job(s.book, id, how)) : use(slow_job(s.book, id, 0ns, how));
}

void try_it(weir::pool& p, storm& s, int id, int kind) {
  s.book.arrive(id);
  const std::error_code code =
      with_job(s, id, kind, [&](auto job) { return p.try_submit(std::move(job)); });
  if (!code) s.book.accept(id);
  s.of(id) = code ? fate::refused : fate::accepted;
}

task<> submit_it(weir::pool& p, storm& s, int id, int kind, std::optional<weir::duration> limit) {
  s.book.arrive(id);
  auto job = slow_job(s.book, id, 0ns, kind == 0 ? ends::badly : ends::well);
  std::exception_ptr error;
  if (limit) error = co_await error_of(p.submit_for(*limit, std::move(job)));
  if (!limit) error = co_await error_of(p.submit(std::move(job)));
  if (!error) s.book.accept(id);
  s.of(id) = fate_of(id, error, fate::accepted);
}

task<> run_it(weir::pool& p, storm& s, int id, int kind) {
  std::exception_ptr error;
  const auto left = weir::scope_exit([&] { s.book.caller_left(id, error); });
  int value = id;
  const ends how = kind == 0 ? ends::badly : ends::well;
  try {
    if (kind % 2 == 0) {
      auto job = plain_job(s.book, id, how);
      value = co_await p.run(std::move(job));
    } else {
      auto job = slow_job(s.book, id, 0ns, how);
      value = co_await p.run(std::move(job));
    }
  } catch (...) {
    error = std::current_exception();
  }
  s.of(id) = value == id ? fate_of(id, error, fate::answered) : fate::wrong;
}

/// On a loop: does everything that one can do.
task<> use(weir::pool& p, storm& s, std::uint64_t seed, int jobs) {
  dice roll(seed);
  for (int i = 0; i < jobs; ++i) {
    const int id = s.book.open();
    const int kind = roll(10);
    const int what = roll(6);
    if (what == 0) try_it(p, s, id, kind);
    if (what == 1) co_await submit_it(p, s, id, kind, std::nullopt);
    if (what == 2) co_await submit_it(p, s, id, kind, 1us * roll(50));
    if (what == 3) co_await run_it(p, s, id, kind);
    if (what < 4) continue;
    co_await weir::with_scope([&](weir::scope& mine) -> task<> {
      auto child = mine.spawn([&]() -> task<> {
        if (what == 4) co_await submit_it(p, s, id, kind, std::nullopt);
        if (what == 5) co_await run_it(p, s, id, kind);
      });
      for (int n = roll(6); n > 0; --n) co_await weir::yield();
      child.cancel();
      (void)co_await weir::settle(child);
    });
  }
}

/// On a plain thread: tries only.
void use_plainly(weir::pool& p, storm& s, std::uint64_t seed, int jobs) {
  dice roll(seed);
  for (int i = 0; i < jobs; ++i) {
    try_it(p, s, s.book.open(), roll(10));
    std::this_thread::yield();
  }
}

/// Everything that was submitted has run, was refused, was withdrawn or was dropped.
void expect_balance(storm& s, int dropped, bool was_cancelled) {
  ASSERT_EQ(s.book.wrong(), nullptr) << s.book.wrong();
  int never_begun = 0;
  int withdrawn = 0;
  for (int id = 0; id < s.book.opened(); ++id) {
    const int begun = s.book.begun(id);
    const fate f = s.of(id);
    EXPECT_NE(f, fate::wrong) << id;
    EXPECT_EQ(begun, s.book.ended(id)) << id;
    EXPECT_TRUE(f != fate::answered || begun == 1) << id;
    EXPECT_TRUE((f != fate::refused && f != fate::late) || begun == 0) << id;
    if (!was_cancelled) {
      EXPECT_NE(f, fate::cancelled) << id;
      EXPECT_TRUE(f != fate::accepted || begun == 1) << id;
    }
    never_begun += begun == 0 && (f == fate::accepted || f == fate::cancelled) ? 1 : 0;
    withdrawn += begun == 0 && f == fate::withdrawn ? 1 : 0;
  }
  // A worker may have taken one that has not begun; a withdrawn one may have been accepted before.
  EXPECT_LE(dropped, never_begun + withdrawn);
  EXPECT_GE(dropped, never_begun - s.size);
}

void expect_nothing_left(storm& s) { EXPECT_EQ(s.book.gone(), s.book.made()); }

enum class finish { drains, closes_early, cancels_early, drops };

/// Ends the pool on a loop of its own; gives how many jobs were dropped by it.
int end_it(weir::pool& p, storm& s, finish how, int early) {
  int dropped = 0;
  weir::run([&]() -> task<> {
    auto watch = weir::on_event([&](const weir::event_info& e) {
      if (e.name == "job_dropped") dropped += static_cast<int>(e.number);
    });
    while (s.book.opened() < early) co_await weir::yield();
    if (how == finish::cancels_early) p.cancel();
    const std::exception_ptr error = co_await error_of(p.close());
    EXPECT_TRUE(!error || failed_job(error) >= 0);
    EXPECT_EQ(s.book.running(), 0);
  });
  return dropped;
}

void one_storm(int workers, int queue, finish how, std::uint64_t seed) {
  SCOPED_TRACE("workers " + std::to_string(workers) + ", queue " + std::to_string(queue) +
               ", end " + std::to_string(static_cast<int>(how)));
  constexpr int each = 40;
  constexpr int users = 4;
  storm s(workers, queue, each * users);
  int dropped = 0;
  {
    weir::pool p(sized(workers, queue));
    std::vector<std::thread> threads;
    for (int u = 0; u < users; ++u)
      threads.emplace_back([&, u] {
        const std::uint64_t mine = seed * 100 + static_cast<std::uint64_t>(u);
        if (u == 0) return use_plainly(p, s, mine, each);
        weir::run([&] { return use(p, s, mine, each); });
      });
    const bool early = how == finish::closes_early || how == finish::cancels_early;
    if (early) dropped = end_it(p, s, how, each * users / 3);
    for (std::thread& t : threads) t.join();
    if (how == finish::drains) dropped = end_it(p, s, how, 0);
    if (how != finish::drops) expect_balance(s, dropped, how == finish::cancels_early);
  }
  EXPECT_EQ(s.book.begun(), s.book.ended());
  EXPECT_EQ(s.book.wrong(), nullptr) << s.book.wrong();
  expect_nothing_left(s);
}

void storms(finish how) {
  std::uint64_t seed = 0;
  for (int workers = 1; workers <= 4; ++workers)
    for (const int queue : {1, 2, 16, 128}) one_storm(workers, queue, how, ++seed);
}

}  // namespace

TEST(pool_storm, every_job_is_accounted_for_when_the_pool_drains) { storms(finish::drains); }
TEST(pool_storm, every_job_is_accounted_for_when_it_is_closed_meanwhile) {
  storms(finish::closes_early);
}
TEST(pool_storm, every_job_is_accounted_for_when_it_is_cancelled_meanwhile) {
  storms(finish::cancels_early);
}
TEST(pool_storm, the_destructor_outside_of_loops_leaves_nothing) { storms(finish::drops); }

TEST(pool_storm, a_scope_that_is_cancelled_takes_its_pool_and_all_callers_along) {
  for (int round = 0; round < 24; ++round) {
    const int workers = 1 + round % 4;
    storm s(workers, 2, 400);
    weir::run([&]() -> task<> {
      auto body = [&](weir::scope& owner) -> task<> {
        weir::runtime rt(owner, {.name = "users", .threads = 2});
        weir::pool p(owner, sized(workers, 2));
        for (int u = 0; u < 4; ++u)
          owner.spawn_on(rt.at(static_cast<std::size_t>(u % 2)), [&, u] {
            return use(p, s, static_cast<std::uint64_t>(round * 10 + u), 100);
          });
        while (s.book.opened() < 5 + 4 * round) co_await weir::yield();
        owner.cancel();
        co_await owner.join();
      };
      (void)co_await weir::settle(weir::with_scope(body));
    });
    EXPECT_EQ(s.book.wrong(), nullptr) << s.book.wrong();
    EXPECT_EQ(s.book.begun(), s.book.ended());
    expect_nothing_left(s);
  }
}

TEST(pool_storm, jobs_of_one_pool_run_jobs_of_another_and_are_cancelled) {
  for (int round = 0; round < 8; ++round) {
    storm outer(2, 2, 200);
    storm inner(1 + round % 3, 1, 200);
    weir::run([&]() -> task<> {
      co_await weir::with_scope([&](weir::scope& owner) -> task<> {
        weir::pool q(owner, sized(1 + round % 3, 1, "q"));
        weir::pool p(owner, sized(2, 2));
        const auto caller = [&]() -> task<> {
          const int id = outer.book.open();
          const auto left = weir::scope_exit([&, id] { outer.book.caller_left(id); });
          auto job = [&, t = job_book::token(outer.book, id)]() -> task<int> {
            const job_book::visit here(t);
            const int nested = inner.book.open();
            co_await run_it(q, inner, nested, 1 + t.id() % 2);
            co_return t.id();
          };
          EXPECT_EQ(co_await p.run(std::move(job)), id);
        };
        co_await weir::with_scope([&](weir::scope& callers) -> task<> {
          dice roll(static_cast<std::uint64_t>(round));
          for (int i = 0; i < 60; ++i) {
            auto child = callers.spawn(caller);
            for (int n = roll(4); n > 0; --n) co_await weir::yield();
            if (roll(2) == 0) child.cancel();
          }
          co_await callers.join();
        });
      });
    });
    EXPECT_EQ(outer.book.wrong(), nullptr) << outer.book.wrong();
    EXPECT_EQ(inner.book.wrong(), nullptr) << inner.book.wrong();
    expect_nothing_left(outer);
    expect_nothing_left(inner);
  }
}
