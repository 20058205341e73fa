// SPDX-License-Identifier: MIT
// Waits for what belongs to this loop, inside every composite, in a generator.
#include "stream_wait_support.hpp"

using namespace weir_test;

namespace {

struct sleeps {
  static constexpr bool pausable = true;
  explicit sleeps(weir::scope&) {}
  auto op() { return weir::sleep(5ms); }
  task<> release() { co_return; }
};
struct queue_next {
  static constexpr bool pausable = true;
  explicit queue_next(weir::scope&) {}
  auto op() { return q.next(); }
  task<> release() {
    (void)q.try_push(1);
    co_return;
  }
  weir::queue<int> q{4};
};
struct queue_push {
  static constexpr bool pausable = true;
  explicit queue_push(weir::scope&) { (void)q.try_push(0); }
  auto op() { return q.push(1); }
  task<> release() {
    (void)q.try_next();
    co_return;
  }
  weir::queue<int> q{1};
};
struct channel_next {
  static constexpr bool pausable = true;
  explicit channel_next(weir::scope&) {}
  auto op() { return ends.second.next(); }
  task<> release() {
    (void)ends.first.try_send(1);
    co_return;
  }
  std::pair<weir::sender<int>, weir::receiver<int>> ends = make();
  static std::pair<weir::sender<int>, weir::receiver<int>> make() {
    auto [tx, rx] = weir::channel<int>(1);
    return {std::move(tx), std::move(rx)};
  }
};
struct channel_send : channel_next {
  explicit channel_send(weir::scope& s) : channel_next(s) { (void)ends.first.try_send(0); }
  auto op() { return ends.first.send(1); }
  task<> release() {
    (void)ends.second.try_next();
    co_return;
  }
};
struct oneshot_receive {
  static constexpr bool pausable = true;
  explicit oneshot_receive(weir::scope&) {}
  auto op() { return o.receive(); }
  task<> release() {
    o.send(1);
    co_return;
  }
  weir::oneshot<int> o;
};
struct event_wait {
  static constexpr bool pausable = true;
  explicit event_wait(weir::scope&) {}
  auto op() { return e.wait(); }
  task<> release() {
    e.set();
    co_return;
  }
  weir::event e;
};
struct latch_wait {
  static constexpr bool pausable = true;
  explicit latch_wait(weir::scope&) {}
  auto op() { return l.wait(); }
  task<> release() {
    l.count_down();
    co_return;
  }
  weir::latch l{1};
};
struct mutex_lock {
  static constexpr bool pausable = true;
  explicit mutex_lock(weir::scope&) : held(m.try_lock()) {}
  auto op() { return m.lock(); }
  task<> release() {
    held.reset();
    co_return;
  }
  weir::mutex m;
  decltype(m.try_lock()) held;
};
/// Any governor with one permit, which is out.
template <class G>
struct acquires {
  static constexpr bool pausable = true;
  template <class... Args>
  explicit acquires(Args&&... args) : g(std::forward<Args>(args)...), held(g.try_acquire()) {}
  auto op() { return g.acquire(); }
  task<> release() {
    held.reset();
    co_return;
  }
  G g;
  std::optional<weir::permit> held;
};
struct counting : acquires<weir::counting_governor> {
  explicit counting(weir::scope&) : acquires(1) {}
};
struct sharing : acquires<weir::shared_governor> {
  explicit sharing(weir::scope&) : acquires(1) {}
};
struct adapting : acquires<weir::adaptive_governor> {
  explicit adapting(weir::scope&) : acquires(weir::adaptive_options{.initial = 1}) {}
};
struct limiting : acquires<weir::rate_governor> {
  explicit limiting(weir::scope&) : acquires(weir::rate_options{.per_second = 200}) {}
};
/// Both permits of a burst are out.
struct bursting : acquires<weir::burst_governor> {
  explicit bursting(weir::scope&)
      : acquires(weir::burst_options{.steady = 1, .burst = 2, .burst_for = 3ms}) {}
  task<> release() {
    second.reset();
    return acquires::release();
  }
  std::optional<weir::permit> second = g.try_acquire();
};
struct under_load : acquires<weir::load_governor> {
  explicit under_load(weir::scope&) : acquires(weir::load_options{.max = 1}) {}
};
/// Another part has the only permit.
struct partitioned {
  static constexpr bool pausable = true;
  explicit partitioned(weir::scope&) : held(whole.part("free").try_acquire()) {}
  auto op() { return whole.part("gold").acquire(); }
  task<> release() {
    held.reset();
    co_return;
  }
  weir::partitioned_governor whole{1, {{"gold", 60}, {"free", 40}}};
  std::optional<weir::permit> held;
};
/// Waits for the first one, or for the second one while it holds the first.
template <bool First>
struct composed {
  static constexpr bool pausable = true;
  explicit composed(weir::scope&)
      : held(First ? outer.try_acquire() : inner.try_acquire()),
        both(weir::compose(outer, inner)) {}
  auto op() { return both.acquire(); }
  task<> release() {
    held.reset();
    co_return;
  }
  weir::counting_governor outer{1};
  weir::shared_governor inner{1};
  std::optional<weir::permit> held;
  weir::composed_governor<weir::counting_governor, weir::shared_governor> both;
};
struct future_of_child {
  static constexpr bool pausable = true;
  explicit future_of_child(weir::scope& s) : f(s.spawn(after(8ms, 1))) {}
  auto op() { return weir::race(f, weir::sleep(2h)); }
  task<> release() { co_return; }
  weir::future<int> f;
};
struct selects {
  static constexpr bool pausable = true;
  explicit selects(weir::scope& s) : slow(s.spawn(after(20ms, 1))), f(s.spawn(after(8ms, 2))) {}
  auto op() { return weir::select(slow, f); }
  task<> release() { co_return; }
  weir::future<int> slow, f;
};
struct selects_of_many {
  static constexpr bool pausable = true;
  explicit selects_of_many(weir::scope& s) {
    for (int i = 0; i < 3; ++i) children.push_back(s.spawn(after(8ms * (3 - i), i)));
  }
  auto op() { return weir::select(children); }
  task<> release() { co_return; }
  std::vector<weir::future<int>> children;
};
struct stream_next {
  static constexpr bool pausable = true;
  explicit stream_next(weir::scope&) : inner(feed(p)) {}
  auto op() { return inner.next(); }
  task<> release() { co_return; }
  probe p{.items = {1, 2, 3}, .pause = 8ms};
  weir::stream<int> inner;
};
using merged =
    decltype(weir::merge(std::declval<weir::stream<int>>(), std::declval<weir::stream<int>>()));
struct merged_next {
  static constexpr bool pausable = true;
  explicit merged_next(weir::scope&) : inner(weir::merge(feed(p), feed(p))) {}
  auto op() { return inner.next(); }
  task<> release() { co_return; }
  probe p{.items = {1, 2, 3}, .pause = 8ms};
  merged inner;
};
struct subscription_next {
  static constexpr bool pausable = true;
  explicit subscription_next(weir::scope&) {}
  auto op() { return sub.next(); }
  task<> release() {
    (void)b.try_emit(1);
    co_return;
  }
  weir::broadcast<int> b{1};
  weir::subscription<int> sub = b.subscribe();
};
struct broadcast_emit : subscription_next {
  explicit broadcast_emit(weir::scope& s) : subscription_next(s) { (void)b.try_emit(0); }
  auto op() { return b.emit(1); }
  task<> release() { (void)co_await sub.next(); }
};
struct idle_of_scope {
  static constexpr bool pausable = true;
  explicit idle_of_scope(weir::scope& s) : of(&s) { s.spawn(sleep_for(8ms)); }
  auto op() { return of->idle(); }
  task<> release() { co_return; }
  weir::scope* of;
};

}  // namespace

TEST(stream_wait, time_and_queues) {
  in_all_composites<sleeps>();
  in_all_composites<queue_next>();
  in_all_composites<queue_push>();
}
TEST(stream_wait, channels) {
  in_all_composites<channel_next>();
  in_all_composites<channel_send>();
}
TEST(stream_wait, oneshots_events_latches_and_locks) {
  in_all_composites<oneshot_receive>();
  in_all_composites<event_wait>();
  in_all_composites<latch_wait>();
  in_all_composites<mutex_lock>();
}
TEST(stream_wait, governors) {
  in_all_composites<counting>();
  in_all_composites<sharing>();
  in_all_composites<adapting>();
  in_all_composites<limiting>();
}
TEST(stream_wait, governors_whose_limit_moves) {
  in_all_composites<bursting>();
  in_all_composites<under_load>();
}
TEST(stream_wait, governors_made_of_others) {
  in_all_composites<partitioned>();
  in_all_composites<composed<true>>();
  in_all_composites<composed<false>>();
}
TEST(stream_wait, futures_and_scopes) {
  in_all_composites<future_of_child>();
  in_all_composites<idle_of_scope>();
}
TEST(stream_wait, selected_futures) {
  in_all_composites<selects>();
  in_all_composites<selects_of_many>();
}
TEST(stream_wait, streams) {
  in_all_composites<stream_next>();
  in_all_composites<merged_next>();
}
TEST(stream_wait, hot_streams) {
  in_all_composites<subscription_next>();
  in_all_composites<broadcast_emit>();
}
