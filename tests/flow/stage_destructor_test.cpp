// SPDX-License-Identifier: MIT
// "Items' destructors may use the container they came from", for what a stream holds: an item uses
// the source of its stream when a stage drops it, moves it on or is destroyed with it. Each stage
// that holds items, over each kind of source, with each deed and each way to end.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow_support.hpp"
#include "toolkit/hostile_support.hpp"

using namespace weir_test;

namespace {

using hostile_stream = weir::any_stream<hostile>;
using result = weir::any_stream<int>;

/// Where the items come from.
class origin {
 public:
  origin() = default;
  origin(const origin&) = delete;
  origin& operator=(const origin&) = delete;
  virtual ~origin() = default;
  virtual hostile_stream stream(weir::scope& s) = 0;
  virtual void give(const hostile& item) = 0;
  /// Takes an item away, or lets another consumer come and go.
  virtual void meddle() = 0;
  virtual void close() = 0;
  virtual void fail() = 0;

  /// Destroys the stream, unless it is just being pulled.
  void drop_stream() {
    if (!pulled) const auto gone = std::exchange(pipeline, nullptr);
  }

  std::unique_ptr<result> pipeline;
  bool pulled = false;
  weir::child<void> consumer;
};

class of_queue final : public origin {
 public:
  hostile_stream stream(weir::scope&) override { return q_.stream(); }
  void give(const hostile& item) override { (void)q_.try_push(item); }
  void meddle() override { (void)q_.try_next(); }
  void close() override { q_.discard(); }
  void fail() override { q_.fail(std::make_exception_ptr(boom(1))); }

 private:
  weir::queue<hostile> q_{6};
};

class of_channel final : public origin {
 public:
  of_channel() {
    auto [tx, rx] = weir::channel<hostile>(4);
    to_.emplace(std::move(tx));
    from_.emplace(std::move(rx));
  }
  hostile_stream stream(weir::scope&) override { return from_->stream(); }
  void give(const hostile& item) override { (void)!to_->try_send(item); }
  void meddle() override { const auto twin = *to_; }
  void close() override { to_->close(); }
  void fail() override { from_->close(); }

 private:
  std::optional<weir::sender<hostile>> to_;
  std::optional<weir::receiver<hostile>> from_;
};

/// Of broadcast and replay.
template <class B>
class of_subscription final : public origin {
 public:
  hostile_stream stream(weir::scope&) override {
    return b_.subscribe({.overflow = weir::overflow::drop_oldest}).stream();
  }
  void give(const hostile& item) override {
    if (!b_.closed()) (void)b_.try_emit(item);
  }
  void meddle() override { auto other = b_.subscribe({.replay = 2}); }
  void close() override { b_.close(); }
  void fail() override { b_.fail(std::make_exception_ptr(boom(2))); }

 private:
  B b_{3};
};

class of_share final : public origin {
 public:
  hostile_stream stream(weir::scope& s) override {
    const weir::share_options options{.capacity = 2,
                                      .overflow = weir::overflow::drop_oldest,
                                      .stop = weir::when::never,
                                      .replay = 2};
    hot_.emplace(weir::share(s, q_.stream(), options));
    return hot_->subscribe().stream();
  }
  void give(const hostile& item) override { (void)q_.try_push(item); }
  void meddle() override { auto other = hot_->subscribe(); }
  void close() override { q_.close(); }
  void fail() override { q_.fail(std::make_exception_ptr(boom(3))); }

 private:
  weir::queue<hostile> q_{6};
  std::optional<weir::shared_stream<hostile>> hot_;
};

class of_callback final : public origin {
 public:
  hostile_stream stream(weir::scope&) override {
    return weir::from_callback<hostile>(3, weir::overflow::drop_oldest,
                                        [this](weir::emitter<hostile> e) { out_.emplace(e); });
  }
  void give(const hostile& item) override {
    if (out_) (void)out_->emit(item);
  }
  void meddle() override { give(hostile(6)); }
  void close() override {
    if (out_) out_->close();
  }
  void fail() override {
    if (out_) out_->fail(std::make_exception_ptr(boom(4)));
  }

 private:
  std::optional<weir::emitter<hostile>> out_;
};

const std::vector<deed<origin>> deeds = {
    {"nothing", [](auto&) {}},
    {"give", [](auto& o) { o.give(hostile(7)); }},
    {"meddle", [](auto& o) { o.meddle(); }},
    {"both", [](auto& o) { o.give(hostile(8)), o.meddle(); }},
    {"close", [](auto& o) { o.close(); }},
    {"fail", [](auto& o) { o.fail(); }},
    {"drop", [](auto& o) { o.drop_stream(); }},
    {"cancel", [](auto& o) { o.consumer.cancel(); }},
};

// ------------------------------------------------------------------ the stages

struct stage_under_test {
  const char* name;
  std::function<result(hostile_stream)> over;
};

/// Any item as a number; it is destroyed here.
struct as_number {
  int operator()(const hostile& item) const { return item.n; }
  template <class V>
  int operator()(const V&) const {
    return 1;
  }
};

template <class Op>
stage_under_test stage(const char* name, Op op) {
  return {name,
          [op](hostile_stream s) -> result { return std::move(s) | op | weir::map(as_number()); }};
}
/// Of a stream that is made by `make(source)`.
template <class F>
stage_under_test made(const char* name, F make) {
  return {name, [make](hostile_stream s) -> result {
            return make(std::move(s)) | weir::map(as_number());
          }};
}

hostile same(const hostile& item) { return item; }
task<hostile> soon(hostile item) {
  co_await weir::sleep(1ms);
  co_return item;
}
weir::stream<hostile> two_of(hostile item) {
  co_yield item;
  co_await weir::sleep(1ms);
  co_yield item;
}
weir::stream<hostile> passed_on(hostile_stream from) {
  hostile before;
  for (;;) {
    auto item = co_await from.next();
    if (!item) co_return;
    before = *item;
    co_yield std::move(*item);
  }
}
weir::stream<hostile> peaceful() {
  for (int i = 0; i < 3; ++i) {
    co_yield hostile(20 + i);
    co_await weir::sleep(1ms);
  }
}

std::vector<stage_under_test> stages_that_keep() {
  const auto even = [](const hostile& item) { return item.n % 2 == 0; };
  const auto join = [](const hostile& a, const hostile& b) { return a.n < b.n ? b : a; };
  return {
      stage("map", weir::map(same)),
      stage("filter", weir::filter(even)),
      stage("scan", weir::scan(hostile(1), join)),
      stage("enumerate", weir::enumerate()),
      stage("dedup", weir::dedup()),
      stage("distinct", weir::distinct(2)),
      stage("start_with", weir::start_with(hostile(9))),
      stage("take", weir::take(4)),
      stage("take_while", weir::take_while([](const hostile& item) { return item.n < 3; })),
      stage("drop", weir::drop(3)),
      stage("drop_while", weir::drop_while(even)),
      stage("take_last", weir::take_last(2)),
      stage("skip_last", weir::skip_last(2)),
      stage("chunks", weir::chunks(3)),
      stage("chunks in time", weir::chunks(3, 1ms)),
      stage("ready_chunks", weir::ready_chunks(2)),
      stage("sliding", weir::sliding(2)),
      stage("group_by", weir::group_by([](const hostile& item) { return item.n / 2; })),
      stage("throttle", weir::throttle(1ms)),
      stage("timeout_each", weir::timeout_each(2ms)),
  };
}

std::vector<stage_under_test> stages_with_children() {
  const auto join = [](const hostile& a, const hostile& b) { return a.n < b.n ? b : a; };
  return {
      stage("buffer, wait", weir::buffer(2, weir::overflow::wait)),
      stage("buffer, drop_oldest", weir::buffer(2, weir::overflow::drop_oldest)),
      stage("buffer, drop_newest", weir::buffer(2, weir::overflow::drop_newest)),
      stage("buffer, conflate", weir::buffer(2, weir::overflow::conflate)),
      stage("conflate", weir::conflate(join)),
      stage("sample", weir::sample(1ms)),
      stage("debounce", weir::debounce(1ms)),
      stage("delay", weir::delay(2ms)),
      stage("map_async", weir::map_async(2, soon)),
      stage("map_async_unordered", weir::map_async_unordered(2, soon)),
      stage("buffered", weir::buffered(2)),
      stage("limit", weir::limit(1)),
      stage("flat_map, concurrent", weir::flat_map(2, two_of)),
  };
}

std::vector<stage_under_test> stages_of_streams() {
  return {
      stage("flat_map", weir::flat_map(two_of)),
      stage("switch_map", weir::switch_map(two_of)),
      made("take_until",
           [](hostile_stream s) { return std::move(s) | weir::take_until(weir::sleep(4ms)); }),
      made("merge", [](hostile_stream s) { return weir::merge(std::move(s), peaceful()); }),
      made("concat", [](hostile_stream s) { return weir::concat(peaceful(), std::move(s)); }),
      made("zip", [](hostile_stream s) { return weir::zip(std::move(s), peaceful()); }),
      made("combine_latest",
           [](hostile_stream s) { return weir::combine_latest(std::move(s), peaceful()); }),
      made("race_streams",
           [](hostile_stream s) { return weir::race_streams(peaceful(), std::move(s)); }),
      made("with_latest_from, below",
           [](hostile_stream s) { return std::move(s) | weir::with_latest_from(peaceful()); }),
      made("with_latest_from, beside",
           [](hostile_stream s) { return peaceful() | weir::with_latest_from(std::move(s)); }),
      made("catch_with",
           [](hostile_stream s) {
             return std::move(s) | weir::catch_with([](std::exception_ptr) { return peaceful(); });
           }),
      made("a generator", [](hostile_stream s) { return passed_on(std::move(s)); }),
      made("all of them",
           [](hostile_stream s) {
             return passed_on(std::move(s) | weir::buffer(2, weir::overflow::drop_oldest)) |
                    weir::skip_last(1) | weir::sliding(2);
           }),
  };
}

// ------------------------------------------------------------------ the programs

enum class ending { drained, closed, destroyed };

/// While the stream is in use, it is not dropped.
class pull_mark {
 public:
  explicit pull_mark(origin& of) : of_(of) { of_.pulled = true; }
  pull_mark(const pull_mark&) = delete;
  pull_mark& operator=(const pull_mark&) = delete;
  ~pull_mark() { of_.pulled = false; }

 private:
  origin& of_;
};

/// One pull for a while; whether the end has come.
task<bool> pull_to_the_end(origin& from) {
  if (from.pipeline == nullptr) co_return true;  // dropped before this began
  const pull_mark here(from);
  const auto next = co_await weir::settle(weir::with_timeout(2ms, from.pipeline->next()));
  co_return next.is_value() && !next.value();
}

task<> use_stream(origin& from, ending how) {
  for (int i = how == ending::drained ? 0 : 37; i < 40; ++i) {
    if (co_await pull_to_the_end(from)) break;
    co_await weir::sleep(500us);  // children of the stream go on
  }
  if (how == ending::closed && from.pipeline != nullptr) {
    const pull_mark here(from);
    co_await from.pipeline->close();
  }
  from.drop_stream();
  co_await weir::sleep(3ms);
}

task<> give_all(origin& from, const std::function<void()>& act) {
  for (int i = 0; i < 12; ++i) {
    from.give(hostile(i / 2, &act));
    if (i % 4 == 3) co_await weir::sleep(1ms);
  }
}

task<> use_stage(weir::scope& s, origin& from, const stage_under_test& stage, ending how,
                 const std::function<void()>& act) {
  from.pipeline = std::make_unique<result>(stage.over(from.stream(s)));
  from.consumer = s.spawn(use_stream(from, how));
  co_await weir::sleep(1ms);
  co_await give_all(from, act);
  if (how == ending::drained) from.close();
  (void)co_await weir::settle(from.consumer);
}

/// A sink in the place of the pulls.
struct sink_under_test {
  const char* name;
  std::function<task<>(hostile_stream)> over;
};

template <class Sink>
sink_under_test sink(const char* name, Sink into) {
  return {name, [into](hostile_stream s) -> task<> { (void)co_await (std::move(s) | into); }};
}

std::vector<sink_under_test> sinks_under_test() {
  const auto join = [](const hostile& a, const hostile& b) { return a.n < b.n ? b : a; };
  const auto third = [](const hostile& item) { return item.n == 3; };
  return {
      sink("to_vector", weir::to_vector()),
      sink("for_each, concurrent", weir::for_each(soon, 2)),
      sink("find", weir::find(third)),
      sink("find, concurrent", weir::find(third, 2)),
      sink("fold", weir::fold(hostile(1), join)),
      sink("reduce", weir::reduce(join)),
      sink("reduce, concurrent", weir::reduce(join, 2)),
      sink("first", weir::first()),
      sink("last", weir::last()),
      sink("last, concurrent", weir::last(2)),
  };
}

task<> use_sink(weir::scope& s, origin& from, const sink_under_test& sink,
                const std::function<void()>& act) {
  from.consumer = s.spawn(sink.over(from.stream(s)));
  co_await weir::sleep(1ms);
  co_await give_all(from, act);
  from.close();
  (void)co_await weir::settle(from.consumer);
}

/// Runs `use(scope, origin, act)`; afterwards nothing is left.
template <class Origin, class F>
void one_program(const deed<origin>& d, F use) {
  const auto program = [&]() -> task<> {
    hostile::alive = 0;
    std::function<void()> act;
    Origin from;
    act = [&] { d.does(from); };
    auto body = [&](weir::scope& s) -> task<> {
      co_await use(s, from, act);
      from.drop_stream();
      s.cancel();
    };
    auto all = weir::with_scope({.failure = weir::failure::isolate}, body);
    const auto end = co_await weir::settle(std::move(all));
    EXPECT_TRUE(!end.is_error() || holds<boom>(end.error()));  // of a share without subscribers
    act = nullptr;
  };
  const weir::sim::explore_options orders[] = {{.runs = 1, .strategy = weir::sim::fifo},
                                               {.runs = 2, .strategy = weir::sim::random}};
  for (const auto& order : orders) {
    if (!weir::testing::explore(order, program).ok()) return;
    EXPECT_EQ(hostile::alive, 0);
  }
}

template <class Origin>
void all_programs(const std::vector<stage_under_test>& stages) {
  for (const stage_under_test& stage : stages)
    for (const auto& d : deeds)
      for (const ending how : {ending::drained, ending::closed, ending::destroyed}) {
        SCOPED_TRACE(std::string(stage.name) + ", " + d.name + ", ending " +
                     std::to_string(static_cast<int>(how)));
        one_program<Origin>(d, [&](weir::scope& s, origin& from, const auto& act) {
          return use_stage(s, from, stage, how, act);
        });
      }
}

template <class Origin>
void all_sinks() {
  for (const sink_under_test& sink : sinks_under_test())
    for (const auto& d : deeds) {
      SCOPED_TRACE(std::string(sink.name) + ", " + d.name);
      one_program<Origin>(d, [&](weir::scope& s, origin& from, const auto& act) {
        return use_sink(s, from, sink, act);
      });
    }
}

template <class Origin>
void all_stages() {
  all_programs<Origin>(stages_that_keep());
  all_programs<Origin>(stages_with_children());
  all_programs<Origin>(stages_of_streams());
}

}  // namespace

TEST(stage_destructor, uses_the_queue_below_the_stage) { all_stages<of_queue>(); }
TEST(stage_destructor, uses_the_channel_below_the_stage) { all_stages<of_channel>(); }
TEST(stage_destructor, uses_the_broadcast_below_the_stage) {
  all_stages<of_subscription<weir::broadcast<hostile>>>();
}
TEST(stage_destructor, uses_the_replay_below_the_stage) {
  all_stages<of_subscription<weir::replay<hostile>>>();
}
TEST(stage_destructor, uses_the_shared_stream_below_the_stage) { all_stages<of_share>(); }
TEST(stage_destructor, uses_the_callback_stream_below_the_stage) { all_stages<of_callback>(); }
TEST(stage_destructor, uses_what_is_below_a_sink) {
  all_sinks<of_queue>();
  all_sinks<of_channel>();
  all_sinks<of_subscription<weir::broadcast<hostile>>>();
  all_sinks<of_share>();
  all_sinks<of_callback>();
}
