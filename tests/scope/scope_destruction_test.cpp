// SPDX-License-Identifier: MIT
// Every frame, callable, argument, result, error and reason is destroyed exactly once, whichever
// way its fiber ends. A ledger knows the address of each living object, so that an object that is
// destroyed twice, never, or used after its end is found.
#include <algorithm>
#include <set>

#include "scope_support.hpp"

using namespace weir_test;

namespace {

/// The living objects of one test; complains about a second construction or destruction.
class ledger {
 public:
  void born(const void* object) { EXPECT_TRUE(alive_.insert(object).second) << "born twice"; }
  void died(const void* object) { EXPECT_EQ(alive_.erase(object), 1u) << "destroyed twice"; }
  void used(const void* object) const { EXPECT_EQ(alive_.count(object), 1u) << "used when dead"; }
  std::size_t alive() const { return alive_.size(); }

 private:
  std::set<const void*> alive_;
};

/// A value that is entered in a ledger for as long as it lives.
class tracked {
 public:
  explicit tracked(ledger& book) : book_(&book) { book_->born(this); }
  tracked(const tracked& other) : book_(other.book_) {
    book_->used(&other);
    book_->born(this);
  }
  tracked(tracked&& other) noexcept : book_(other.book_) { book_->born(this); }
  tracked& operator=(const tracked&) = default;
  tracked& operator=(tracked&&) noexcept = default;
  ~tracked() { book_->died(this); }
  void use() const { book_->used(this); }

 private:
  ledger* book_;
};

struct tracked_error {
  tracked inside;
};

enum class path {
  value,
  value_after_parking,
  error,
  error_after_parking,
  cancelled_before_start,
  cancelled_while_parked,
  cancelled_while_ready,
  cancelled_while_running,
  cancelled_in_a_nested_frame,
  refused_by_a_cancelled_scope,
};

constexpr path all_paths[] = {
    path::value,
    path::value_after_parking,
    path::error,
    path::error_after_parking,
    path::cancelled_before_start,
    path::cancelled_while_parked,
    path::cancelled_while_ready,
    path::cancelled_while_running,
    path::cancelled_in_a_nested_frame,
    path::refused_by_a_cancelled_scope,
};

bool ends_cancelled(path way) { return way >= path::cancelled_before_start; }

weir::task<> park_with(tracked argument) {
  const tracked local(argument);
  co_await weir::sleep(1000h);
  local.use();
}

/// The fiber under test: an argument, a local, a result, and for some paths an error.
weir::task<tracked> travel(ledger& book, tracked argument, path way, weir::child<tracked>*& self) {
  const tracked local(book);
  argument.use();
  if (way == path::value_after_parking || way == path::error_after_parking) {
    co_await weir::sleep(1ms);
  }
  if (way == path::error || way == path::error_after_parking) {
    tracked inside(book);
    throw tracked_error{std::move(inside)};
  }
  if (way == path::cancelled_while_parked) co_await weir::sleep(1000h);
  if (way == path::cancelled_while_ready) co_await weir::sleep(5ms);
  if (way == path::cancelled_while_running) self->cancel();
  if (way == path::cancelled_while_running) co_await weir::checkpoint();
  if (way == path::cancelled_in_a_nested_frame) co_await park_with(local);
  if (way == path::cancelled_while_ready) co_await weir::checkpoint();
  local.use();
  co_return tracked(book);
}

/// Brings the child that `spawn` makes to the end of the given path and checks how it ended.
template <class Spawn>
weir::task<> follow(path way, Spawn spawn) {
  weir::child<tracked>* self = nullptr;
  auto ended = co_await weir::settle(
      weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> weir::task<> {
        if (way == path::refused_by_a_cancelled_scope) s.cancel();
        weir::child<tracked> child = spawn(s, self);
        self = &child;
        if (way == path::cancelled_before_start) child.cancel();
        if (way == path::refused_by_a_cancelled_scope) co_return;
        co_await weir::sleep(5ms);
        child.cancel();
        co_await s.idle();
        EXPECT_TRUE(child.done());
        const bool failed = way == path::error || way == path::error_after_parking;
        EXPECT_EQ(child.peek()->is_error(), failed);
        EXPECT_EQ(failed && holds<tracked_error>(child.peek()->error()), failed);
        if (way != path::cancelled_while_ready) {
          EXPECT_EQ(child.peek()->is_cancelled(), ends_cancelled(way));
        }
        if (child.peek()->is_value()) child.peek()->value().use();
      }));
  const bool failed = way == path::error || way == path::error_after_parking;
  EXPECT_EQ(ended.is_error(), failed);  // isolated, and nobody awaited it
}

}  // namespace

TEST(destruction, a_spawned_task_is_destroyed_once_on_every_path) {
  for (path way : all_paths) {
    SCOPED_TRACE(::testing::Message() << "path " << static_cast<int>(way));
    for_each_order([&](weir::sim::world& w) {
      ledger book;
      w.run([&]() -> weir::task<> {
        co_await follow(way, [&](weir::scope& s, weir::child<tracked>*& self) {
          return s.spawn(travel(book, tracked(book), way, self));
        });
        EXPECT_EQ(book.alive(), 0u);
      });
      EXPECT_EQ(book.alive(), 0u);
    });
  }
}

TEST(destruction, a_spawned_callable_is_destroyed_once_on_every_path) {
  for (path way : all_paths) {
    SCOPED_TRACE(::testing::Message() << "path " << static_cast<int>(way));
    for_each_order([&](weir::sim::world& w) {
      ledger book;
      w.run([&]() -> weir::task<> {
        co_await follow(way, [&](weir::scope& s, weir::child<tracked>*& self) {
          const tracked capture(book);
          auto callable = [capture, &book, way, &self] {
            capture.use();
            return travel(book, capture, way, self);
          };
          return s.spawn(std::move(callable));
        });
        EXPECT_EQ(book.alive(), 0u);
      });
      EXPECT_EQ(book.alive(), 0u);
    });
  }
}

TEST(destruction, a_capturing_coroutine_lambda_lives_as_long_as_its_task) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    w.run([&]() -> weir::task<> {
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        {
          const tracked capture(book);
          auto finishing = [capture]() -> weir::task<> {
            co_await weir::sleep(5ms);
            capture.use();
          };
          auto parked = [capture]() -> weir::task<> {
            auto guard = weir::scope_exit([&] { capture.use(); });
            co_await weir::sleep(1000h);
          };
          s.spawn(finishing);
          s.spawn(std::move(parked)).cancel();
          s.background(std::move(finishing));
        }
        co_await s.join();
      });
      EXPECT_EQ(book.alive(), 0u);
    });
  });
}

TEST(destruction, a_task_that_is_never_awaited_destroys_its_arguments) {
  ledger book;
  {
    weir::child<tracked>* self = nullptr;
    auto unused = travel(book, tracked(book), path::value, self);
    EXPECT_EQ(book.alive(), 1u);
    auto moved = std::move(unused);
    EXPECT_EQ(book.alive(), 1u);
  }
  EXPECT_EQ(book.alive(), 0u);
}

TEST(destruction, what_a_closed_or_full_scope_refuses_is_destroyed_at_once) {
  ledger book;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope({.max_children = 1}, [&](weir::scope& s) -> weir::task<> {
      s.spawn(sleep_for(1ms));
      auto refused = [&] { s.spawn(park_with(tracked(book))); };
      EXPECT_EQ(code_thrown_by(refused), weir::errc::scope_full);
      EXPECT_EQ(book.alive(), 0u);
      EXPECT_FALSE(s.try_spawn(park_with(tracked(book))).has_value());
      EXPECT_EQ(book.alive(), 0u);
      co_await s.join();
      EXPECT_EQ(code_thrown_by(refused), weir::errc::scope_closed);
      EXPECT_EQ(book.alive(), 0u);
    });
  });
}

TEST(destruction, a_result_lives_as_long_as_its_last_future_also_after_the_loop) {
  ledger book;
  std::optional<weir::future<tracked>> kept;
  std::optional<weir::future<tracked>> copy;
  weir::child<tracked>* self = nullptr;
  weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      kept = s.spawn(travel(book, tracked(book), path::value, self));
      copy = kept;
      co_await s.join();
    });
    EXPECT_EQ(book.alive(), 1u);
  });
  EXPECT_EQ(book.alive(), 1u);
  ASSERT_NE(kept->peek(), nullptr);
  kept->peek()->value().use();
  kept.reset();
  EXPECT_EQ(book.alive(), 1u);
  copy.reset();
  EXPECT_EQ(book.alive(), 0u);
}

TEST(destruction, a_result_that_was_taken_belongs_to_who_took_it) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    w.run([&]() -> weir::task<> {
      weir::child<tracked>* self = nullptr;
      std::optional<tracked> mine;
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        auto taken = s.spawn(travel(book, tracked(book), path::value_after_parking, self));
        tracked value = co_await taken.take();
        mine.emplace(std::move(value));
        s.spawn(travel(book, tracked(book), path::value, self));
        co_await s.join();
      });
      EXPECT_EQ(book.alive(), 1u);
      mine->use();
      mine.reset();
      EXPECT_EQ(book.alive(), 0u);
    });
  });
}

namespace {

/// The errors in the ring of events, which lives as long as the loop.
std::size_t errors_of_events() {
  const weir::event_log log = weir::recent_events();
  return static_cast<std::size_t>(std::count_if(log.events.begin(), log.events.end(),
                                                [](const auto& e) { return e.error != nullptr; }));
}

}  // namespace

// After handling, nobody but the handler holds the error. One that was suppressed was not
// delivered to anybody: its event has it, and nothing else.
TEST(destruction, an_error_is_gone_when_its_handler_has_ended) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    w.run([&]() -> weir::task<> {
      weir::child<tracked>* self = nullptr;
      bool caught = false;
      try {
        co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
          s.spawn(travel(book, tracked(book), path::error_after_parking, self));
          s.spawn(travel(book, tracked(book), path::error_after_parking, self));
          s.spawn(park_with(tracked(book)));
          co_await weir::sleep(1000h);
        });
      } catch (const tracked_error& e) {
        e.inside.use();
        caught = true;
      }
      EXPECT_TRUE(caught);
      EXPECT_EQ(book.alive(), errors_of_events());
      EXPECT_LE(book.alive(), 1u);
    });
    EXPECT_EQ(book.alive(), 0u);
  });
}

TEST(destruction, an_error_that_was_not_suppressed_is_in_no_event) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    w.run([&]() -> weir::task<> {
      weir::child<tracked>* self = nullptr;
      auto fail = [&]() -> weir::task<> {
        co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
          s.spawn(travel(book, tracked(book), path::error_after_parking, self));
          s.spawn(park_with(tracked(book)));
          co_await weir::sleep(1000h);
        });
      };
      bool caught = false;
      try {
        co_await fail();
      } catch (const tracked_error& e) {
        e.inside.use();
        caught = true;
      }
      EXPECT_TRUE(caught);
      EXPECT_EQ(book.alive(), 0u);
    });
  });
}

TEST(destruction, the_cause_of_a_reason_lives_as_long_as_the_future_that_shows_it) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    std::optional<weir::future<void>> sibling;
    w.run([&]() -> weir::task<> {
      weir::child<tracked>* self = nullptr;
      auto ended = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> weir::task<> {
        sibling = s.spawn(sleep_for(1000h));
        s.spawn(travel(book, tracked(book), path::error_after_parking, self));
        co_await weir::sleep(1000h);
      }));
      EXPECT_TRUE(ended.is_error());
    });
    EXPECT_EQ(book.alive(), 1u);
    EXPECT_TRUE(holds<tracked_error>(sibling->peek()->reason().cause));
    sibling.reset();
    EXPECT_EQ(book.alive(), 0u);
  });
}

TEST(destruction, scope_bodies_defers_and_their_captures_are_destroyed_once) {
  for (bool cancelled : {false, true}) {
    for_each_order([&](weir::sim::world& w) {
      ledger book;
      w.run([&]() -> weir::task<> {
        const tracked capture(book);
        auto plain = [capture] { capture.use(); };
        auto waiting = [capture]() -> weir::task<> {
          co_await weir::sleep(1ms);
          capture.use();
        };
        auto body = [capture, plain, waiting, cancelled](weir::scope& s) -> weir::task<> {
          const tracked local(capture);
          s.defer(plain);
          s.defer(waiting);
          s.background(waiting);
          s.spawn(waiting);
          co_await weir::sleep(5ms);
          if (cancelled) s.cancel();
          co_await weir::checkpoint();
          local.use();
        };
        const std::size_t before = book.alive();
        auto ended = co_await weir::settle(weir::with_scope(std::move(body)));
        EXPECT_EQ(ended.is_cancelled(), cancelled);
        EXPECT_EQ(book.alive(), before);
      });
      EXPECT_EQ(book.alive(), 0u);
    });
  }
}

TEST(destruction, waits_that_lose_and_ops_that_never_start_are_destroyed_once) {
  for_each_order([](weir::sim::world& w) {
    ledger book;
    w.run([&]() -> weir::task<> {
      weir::child<tracked>* self = nullptr;
      auto late = park_with(tracked(book));
      auto timed = co_await weir::settle(weir::with_timeout(5ms, std::move(late)));
      EXPECT_TRUE(timed.is_error());
      EXPECT_EQ(book.alive(), 0u);
      auto unstarted = park_with(tracked(book));
      auto expired = co_await weir::settle(weir::with_timeout(0ms, std::move(unstarted)));
      EXPECT_TRUE(expired.is_error());
      EXPECT_EQ(book.alive(), 0u);
      weir::cancel_source source;
      source.cancel();
      const auto token = source.token();
      auto refused = park_with(tracked(book));
      auto fired = co_await weir::settle(weir::with_token(token, std::move(refused)));
      EXPECT_TRUE(fired.is_cancelled());
      EXPECT_EQ(book.alive(), 0u);
      {
        auto quick = travel(book, tracked(book), path::value_after_parking, self);
        auto slow = travel(book, tracked(book), path::cancelled_while_parked, self);
        auto winner = co_await weir::race(std::move(quick), std::move(slow));
        winner.use();
        EXPECT_EQ(book.alive(), 1u);
      }
      EXPECT_EQ(book.alive(), 0u);
    });
  });
}

// The root is a fiber like any other: what is left when a deadlock is found is unwound too.
TEST(destruction, a_deadlock_unwinds_every_frame_before_run_throws) {
  ledger book;
  auto code = code_thrown_by([&] {
    weir::sim::run({.seed = 1}, [&]() -> weir::task<> {
      const tracked local(book);
      std::optional<weir::future<void>> first;
      std::optional<weir::future<void>> second;
      co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
        first = s.spawn([&]() -> weir::task<> {
          const tracked in_child(book);
          co_await *second;
        });
        second = s.spawn([&]() -> weir::task<> {
          const tracked in_child(book);
          co_await *first;
        });
        co_await s.join();
      });
    });
  });
  EXPECT_EQ(code, weir::errc::deadlock);
  EXPECT_EQ(book.alive(), 0u);
}
