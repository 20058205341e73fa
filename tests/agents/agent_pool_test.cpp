// SPDX-License-Identifier: MIT
// agent_pool: equal agents that pull from one mailbox.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

/// What the members of a pool have in common.
struct pool_counts {
  int made = 0;
  int gone = 0;
  int busy = 0;
  int most = 0;
  numbers begun;
};

class pool_worker {
 public:
  pool_worker(pool_counts* all, int first) : all_(all), count_(first) { ++all_->made; }
  pool_worker(const pool_worker&) = delete;
  pool_worker& operator=(const pool_worker&) = delete;
  ~pool_worker() { ++all_->gone; }

  task<int> work(weir::duration d, int n) {
    all_->begun.push_back(n);
    all_->most = std::max(all_->most, ++all_->busy);
    const auto guard = weir::scope_exit([this] { --all_->busy; });
    co_await weir::sleep(d);
    co_return n;
  }
  int count() { return count_++; }
  void fail(int n) { throw boom(n); }
  void leave_a_note() { weir::self<pool_worker>().cast(&pool_worker::note); }
  void note() { all_->begun.push_back(-1); }

 private:
  pool_counts* all_;
  int count_;
};

using worker_pool = weir::agent_pool<pool_worker>;

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent_pool, as_many_messages_are_handled_at_once_as_it_has_agents) {
  pool_counts all;
  const auto start = weir::now();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    worker_pool p(s, 3, {.name = "crew"}, &all, 0);
    for (int i = 1; i <= 7; ++i) EXPECT_EQ(p.cast(&pool_worker::work, 10ms, i), sent::enqueued);
    EXPECT_EQ(co_await p.call(&pool_worker::work, 10ms, 8), 8);
    EXPECT_EQ(ms_since(start), 30);
    EXPECT_EQ(all.made, 3);
    EXPECT_EQ(all.most, 3);
  });
  EXPECT_EQ(all.gone, 3);
  EXPECT_EQ(sorted(all.begun), from_to(1, 8));
}

FIBER_TEST(agent_pool, messages_begin_in_the_order_of_their_sending) {
  pool_counts all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    worker_pool p(s, 3, {.name = "crew"}, &all, 0);
    for (int i = 1; i <= 20; ++i) p.cast(&pool_worker::work, weir::duration(i * 1ms), i);
    co_return;
  });
  EXPECT_EQ(all.begun, from_to(1, 20));
}

FIBER_TEST_IN_EVERY_ORDER(agent_pool, of_one_is_an_agent) {
  pool_counts all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    worker_pool p(s, 1, {}, &all, 5);
    EXPECT_EQ(co_await p.call(&pool_worker::count), 5);
    EXPECT_EQ(co_await p.call(&pool_worker::count), 6);
    for (int i = 1; i <= 5; ++i) p.cast(&pool_worker::work, 1ms, i);
  });
  EXPECT_EQ(all.begun, from_to(1, 5));
  EXPECT_EQ(all.most, 1);
}

TEST(agent_pool, each_agent_has_its_own_copy_of_the_arguments) {
  class owner {
   public:
    explicit owner(std::shared_ptr<int> mine) : mine_(std::move(mine)) {}
    task<long> uses() {
      co_await weir::sleep(1ms);
      co_return mine_.use_count();
    }

   private:
    std::shared_ptr<int> mine_;
  };
  in_every_order([]() -> task<> {
    auto shared = std::make_shared<int>(1);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::agent_pool<owner> p(s, 2, {}, shared);
      const auto [one, two] = co_await weir::all(p.call(&owner::uses), p.call(&owner::uses));
      EXPECT_GE(one, 3);
      EXPECT_GE(two, 3);
    });
    EXPECT_EQ(shared.use_count(), 1);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_pool, has_one_mailbox_with_one_capacity) {
  pool_counts all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    worker_pool p(s, 2, {.name = "crew", .capacity = 2}, &all, 0);
    for (int i = 1; i <= 2; ++i) EXPECT_EQ(p.cast(&pool_worker::work, 10ms, i), sent::enqueued);
    co_await settled();
    for (int i = 3; i <= 4; ++i) EXPECT_EQ(p.cast(&pool_worker::work, 10ms, i), sent::enqueued);
    EXPECT_EQ(p.cast(&pool_worker::work, 10ms, 5), sent::full);
    const auto error = co_await error_of(p.call(&pool_worker::count));
    EXPECT_EQ(code_of(error), errc::mailbox_full);
  });
  EXPECT_EQ(sorted(all.begun), from_to(1, 4));
}

FIBER_TEST_IN_EVERY_ORDER(agent_pool, an_error_in_a_call_goes_to_the_caller) {
  pool_counts all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    worker_pool p(s, 2, {}, &all, 0);
    for (int i = 1; i <= 4; ++i)
      EXPECT_EQ(boom_of(co_await error_of(p.call(&pool_worker::fail, i))), i);
    EXPECT_EQ(all.gone, 0);
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent_pool, a_crash_fails_the_scope_and_every_call_is_answered_once) {
  pool_counts all;
  int answers = 0;
  std::optional<worker_pool> p;
  auto asks = [&](int i) -> task<> {
    const auto error = co_await error_of(p->call(&pool_worker::work, 1ms, i));
    const std::error_code code = code_of(error);
    EXPECT_TRUE(error == nullptr || code == errc::agent_crashed || code == errc::agent_stopped)
        << what_of(error);
    ++answers;
  };
  co_await weir::with_scope([&](weir::scope& callers) -> task<> {
    auto body = [&](weir::scope& s) -> task<> {
      p.emplace(s, 2, weir::agent_options{.name = "crew"}, &all, 0);
      for (int i = 0; i < 6; ++i) callers.spawn(asks(i));
      co_await weir::yield();
      p->cast(&pool_worker::fail, 9);
      co_await weir::sleep(1h);
    };
    EXPECT_EQ(boom_of(co_await error_of_scope(grace_of(50ms), body)), 9);
    co_await callers.join();
  });
  EXPECT_EQ(all.made, all.gone);
  EXPECT_EQ(answers, 6);
}

FIBER_TEST_IN_EVERY_ORDER(agent_pool, a_member_may_send_to_itself) {
  pool_counts all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    worker_pool p(s, 2, {}, &all, 0);
    co_await p.call(&pool_worker::leave_a_note);
    co_await settled();
    EXPECT_EQ(all.begun, numbers{-1});
  });
}

TEST(agent_pool, a_call_of_the_own_pool_is_a_cycle_only_if_no_member_is_left_to_answer) {
  class asker {
   public:
    task<int> ask(int depth) {
      if (depth == 0) co_return 0;
      co_return 1 + co_await weir::self<asker>().call(&asker::ask, depth - 1);
    }
  };
  in_every_order([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::agent_pool<asker> p(s, 3, {.name = "askers"});
      EXPECT_EQ(co_await p.call(&asker::ask, 2), 2);
      const auto error = co_await error_of(p.call(&asker::ask, 3));
      EXPECT_EQ(code_of(error), errc::call_cycle) << what_of(error);
      EXPECT_EQ(co_await p.call(&asker::ask, 1), 1);
    });
  });
}

FIBER_TEST(agent_pool, needs_at_least_one_agent) {
  pool_counts all;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (const int n : {0, -1}) {
      const auto make = [&] { return (worker_pool(s, n, {}, &all, 0), 0); };
      EXPECT_EQ(code_thrown_by(make), errc::invalid_argument) << n;
    }
    co_return;
  });
  EXPECT_EQ(all.made, 0);
}
