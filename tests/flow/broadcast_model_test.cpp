// SPDX-License-Identifier: MIT
// broadcast against a simple model: random sequences of calls, compared after each; and many
// subscribers whose turns an adversary chooses: the gaps that each sees are counted misses.
#include <deque>
#include <memory>
#include <random>

#include "flow_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;
using int_broadcast = weir::broadcast<int>;
using weir::emit_result;
using weir::overflow;

namespace {

/// One subscriber, written down in the simplest way: what it has not read yet.
struct model_subscriber {
  overflow policy;
  std::deque<int> unread;
  int missed = 0;  // before the oldest unread one (drop_newest: before the next accepted)
  int missed_total = 0;
  std::deque<int> misses;  // drop_newest: before each unread one
  bool lagged = false;

  bool full(std::size_t capacity) const {
    return (policy == overflow::wait || policy == overflow::fail_emitter) &&
           unread.size() >= capacity;
  }
  /// False if something was dropped.
  bool arrives(int item, std::size_t capacity) {
    const std::size_t room = policy == overflow::conflate ? 1 : capacity;
    const bool fits = unread.size() < room;
    if (!fits && policy == overflow::drop_newest) {
      ++missed;
      ++missed_total;
      return false;
    }
    if (!fits) {
      unread.pop_front();
      if (policy == overflow::disconnect) lagged = true;
      ++missed;
      ++missed_total;
    }
    unread.push_back(item);
    if (policy == overflow::drop_newest) misses.push_back(std::exchange(missed, 0));
    return fits;
  }
  int take(int& missed_before) {
    const int item = unread.front();
    unread.pop_front();
    if (policy == overflow::drop_newest) {
      missed_before = misses.front();
      misses.pop_front();
    } else {
      missed_before = std::exchange(missed, 0);
    }
    return item;
  }
};

struct pair_of_both {
  weir::subscription<int> real;
  model_subscriber model;
};

class broadcast_comparison {
 public:
  broadcast_comparison(std::uint32_t seed, std::int64_t capacity)
      : random_(seed), capacity_(static_cast<std::size_t>(capacity)), b_(capacity) {}

  task<> run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const std::uint32_t what = random_() % 16;
      if (what < 7) {
        emit();
      } else if (what < 13) {
        co_await read();
      } else if (what < 15) {
        subscribe();
      } else {
        leave();
      }
    }
    b_.close();
    while (!all_.empty() && !::testing::Test::HasFailure()) co_await read_to_the_end();
  }

 private:
  void emit() {
    auto expected = emit_result::delivered;
    for (auto& s : all_)
      if (s->model.full(capacity_)) expected = emit_result::refused;
    const int item = next_;
    if (expected != emit_result::refused) {
      ++next_;
      last_.push_back(item);
      if (last_.size() > capacity_) last_.pop_front();
      for (auto& s : all_)
        if (!s->model.arrives(item, capacity_)) expected = emit_result::dropped;
    }
    EXPECT_EQ(b_.try_emit(item), expected);
  }
  void subscribe() {
    if (all_.size() == 6) return;
    const overflow policy = overflow_policies[random_() % std::size(overflow_policies)];
    // How "latest only" and "begins k back" go together is the subject of no promise.
    const std::size_t most = policy == overflow::conflate ? 1 : capacity_ + 1;
    const std::size_t back = random_() % (most + 1);
    model_subscriber m{policy, {}, 0, 0, {}, false};
    const std::size_t kept = std::min(back, last_.size());
    for (std::size_t i = last_.size() - kept; i < last_.size(); ++i) m.arrives(last_[i], capacity_);
    auto real = b_.subscribe({.overflow = policy, .replay = static_cast<std::int64_t>(back)});
    all_.push_back(std::make_unique<pair_of_both>(pair_of_both{std::move(real), std::move(m)}));
  }
  void leave() {
    if (all_.empty()) return;
    all_.erase(all_.begin() + static_cast<long>(random_() % all_.size()));
    EXPECT_EQ(b_.subscribers(), all_.size());
  }
  task<> read() {
    if (all_.empty()) co_return;
    pair_of_both& s = *all_[random_() % all_.size()];
    if (s.model.lagged || !s.model.unread.empty()) co_await read_one(s);
    EXPECT_EQ(s.real.missed_total(), static_cast<std::uint64_t>(s.model.missed_total));
  }
  static task<> read_one(pair_of_both& s) {
    if (s.model.lagged) {
      const std::exception_ptr error = co_await error_of(s.real.next());
      EXPECT_EQ(code_of(error), errc::lagged);
      co_return;
    }
    int missed = 0;
    const int expected = s.model.take(missed);
    const int got = co_await take_one(s.real);
    EXPECT_EQ(got, expected);
    EXPECT_EQ(s.real.missed(), static_cast<std::uint64_t>(missed));
  }
  task<> read_to_the_end() {
    pair_of_both& s = *all_.back();
    while (!s.model.lagged && !s.model.unread.empty()) co_await read_one(s);
    if (!s.model.lagged) {
      auto end = co_await s.real.next();
      EXPECT_EQ(end, std::nullopt);
    }
    all_.pop_back();
  }

  std::mt19937 random_;
  std::size_t capacity_;
  int_broadcast b_;
  int next_ = 0;
  std::deque<int> last_;
  std::vector<std::unique_ptr<pair_of_both>> all_;
};

}  // namespace

TEST(broadcast_model, random_sequences_of_calls_answer_like_the_model) {
  const std::uint32_t most = test_support::sanitized ? 60 : 300;
  for (std::uint32_t seed = 1; seed <= most; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    in_order([seed]() -> task<> {
      broadcast_comparison both(seed, 1 + seed % 5);
      co_await both.run(400);
    });
    if (HasFailure()) return;
  }
}

namespace {

/// Reads to the end and checks that each item follows the one before, misses included.
task<> read_a_run(weir::subscription<int> sub, int first, int last) {
  int next = first;
  for (;;) {
    auto v = co_await sub.next();
    if (!v) break;
    next += static_cast<int>(sub.missed());
    EXPECT_EQ(*v, next);
    next = *v + 1;
    co_await weir::yield();
  }
  // What came last and was dropped is in the total only.
  EXPECT_LE(next, last + 1);
  EXPECT_GE(next + static_cast<int>(sub.missed_total()), last + 1);
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(broadcast_model,
                          each_subscriber_sees_a_run_without_gaps_but_for_counted_misses) {
  int_broadcast b(2);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (overflow policy :
         {overflow::wait, overflow::drop_oldest, overflow::drop_newest, overflow::conflate})
      s.spawn(read_a_run(b.subscribe({.overflow = policy}), 0, 7));
    auto emitting = [&]() -> task<> {
      for (int i = 0; i <= 7; ++i) co_await b.emit(i);
      b.close();
    };
    co_await emitting();
  });
}
TEST(broadcast_model, late_subscribers_of_a_replay_see_a_contiguous_suffix) {
  const int subscribers = test_support::sanitized ? 5'000 : 100'000;
  long checked = 0;
  in_order([&]() -> task<> {
    weir::replay<int> r(5);
    std::mt19937 random(1);
    int emitted = 0;
    auto reader = [&](weir::subscription<int> sub, int first, int count) -> task<> {
      for (int i = 0; i < count; ++i) {
        auto v = co_await sub.next();
        EXPECT_EQ(v, first + i);
        if (!v) break;
      }
      EXPECT_EQ(sub.missed_total(), 0U);
      ++checked;
    };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < subscribers; ++i) {
        s.spawn(
            reader(r.subscribe(), std::max(0, emitted - 5), static_cast<int>(1 + random() % 8)));
        if (i % 50 == 0) co_await weir::yield();
        if (random() % 4 == 0) co_await r.emit(emitted++);
      }
      // The last ones still wait for items.
      for (int i = 0; i < 10; ++i) co_await r.emit(emitted++);
    });
    EXPECT_EQ(r.subscribers(), 0U);
  });
  EXPECT_EQ(checked, subscribers);
}

FIBER_TEST_IN_EVERY_ORDER(broadcast_model,
                          subscribing_while_others_emit_leaves_no_gap_and_no_duplicate) {
  weir::replay<int> r(2);
  int emitted = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto emitter = [&]() -> task<> {
      for (int i = 0; i < 6; ++i) {
        co_await r.emit(i);
        emitted = i + 1;
      }
      r.close();
    };
    auto late = [&]() -> task<> {
      co_await weir::yield();
      auto sub = r.subscribe();
      numbers got;
      co_await take_all(sub, got);
      EXPECT_FALSE(got.empty());
      if (!got.empty()) {
        EXPECT_EQ(got, from_to(got.front(), 5));
      }
    };
    s.spawn(emitter());
    s.spawn(late());
    s.spawn(late());
    co_await s.join();
  });
}

FIBER_TEST(broadcast_model, a_replay_gives_its_last_items_also_after_the_end) {
  weir::replay<int> r(3);
  for (int i = 1; i <= 5; ++i) co_await r.emit(i);
  r.close();
  auto sub = r.subscribe({.replay = 1});  // it always begins n back
  numbers got;
  co_await take_all(sub, got);
  EXPECT_EQ(got, from_to(3, 5));

  weir::replay<int> failed(2);
  co_await failed.emit(1);
  failed.fail(std::make_exception_ptr(boom(3)));
  auto late = failed.subscribe();
  const int item = co_await take_one(late);
  EXPECT_EQ(item, 1);
  const std::exception_ptr error = co_await error_of(late.next());
  EXPECT_EQ(boom_of(error), 3);
}
