// SPDX-License-Identifier: MIT
// One reply, and every wait that is built on it: an answer, a cancellation and a crash of the
// asker's loop meet in all orders, and exactly one of them decides.
#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/reply.hpp>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/loop.hpp"
#include "support/test_support.hpp"

using namespace test_support;
using weir::cancel_result;
using weir::task;
using weir::detail::reply;
namespace sim = weir::sim;

namespace {

class reply_probe_wait;

/// A reply without anything else, which counts how often it is freed.
struct reply_probe final : weir::detail::reply_to<reply_probe_wait> {
  explicit reply_probe(int& count) noexcept : freed(count) {}
  void dispose() noexcept override {
    ++freed;
    delete this;
  }
  int& freed;
};

/// Waits for it, and abandons it when cancelled.
class reply_probe_wait : public weir::detail::simple_wait<reply_probe_wait> {
 public:
  using args = reply_probe*;
  using result = void;
  explicit reply_probe_wait(args&& r) noexcept : reply_(r) {}
  ~reply_probe_wait() {
    if (reply_ != nullptr) reply_->leave();
  }
  bool try_now() const noexcept { return false; }
  void arm() noexcept { reply_->ask(*this); }
  cancel_result withdraw() noexcept override {
    if (reply_->leave() == reply::phase::answered) ++lost;
    reply_ = nullptr;
    complete();
    return cancel_result::later;
  }
  bool pausable() const noexcept override { return false; }
  void describe(weir::detail::dump_line& line) const override { line.add("a reply"); }
  void take() const noexcept {}
  void answered() noexcept { complete(); }
  static inline int lost = 0;  // answers that met a cancellation

 private:
  reply_probe* reply_;
};

// ------------------------------------------------------------------ the users

/// The parts of a run that all users need: `ask` runs on loop "x", `answer` on loop "y".
struct user_base {
  explicit user_base(sim::world& in) : w(in) {}
  task<> begin(weir::scope&) { co_return; }
  task<> end() { co_return; }
  static constexpr weir::duration head_start{};  // of the question before the answer
  sim::world& w;
};

/// Runs a task on a loop that may crash, so that no fiber of another loop waits for it.
template <class F>
void start_on(weir::loop_ref where, F f) {
  where.post([f] { weir::detail::loop::here()->root_scope()->background(f()); });
}

struct of_suspend : user_base {
  using user_base::user_base;
  task<> ask() {
    co_await weir::suspend([this](weir::resumer<> r) {
      held = std::move(r);
      return [] { return cancel_result::done; };
    });
  }
  void answer() { held.complete(); }
  static constexpr weir::duration head_start = 100us;
  weir::resumer<> held;
};

struct of_dropped_suspend : of_suspend {
  using of_suspend::of_suspend;
  task<> ask() {
    auto dropped = co_await weir::settle(of_suspend::ask());
    if (dropped.is_error()) {
      EXPECT_EQ(code_of(dropped.error()), weir::errc::abandoned);
    }
  }
  void answer() { held = {}; }
};

struct of_on : user_base {
  using user_base::user_base;
  task<> ask() {
    auto work = [] { return weir::yield(); };
    co_await weir::on(w.loop("y"), work);
  }
  void answer() {}
};

struct of_blocking : user_base {
  using user_base::user_base;
  task<> ask() {
    co_await weir::blocking([] {});
  }
  void answer() {}
};

struct of_shared_governor : user_base {
  using user_base::user_base;
  task<> begin(weir::scope&) { held = co_await g.acquire(); }
  task<> ask() { (void)co_await g.acquire(); }
  void answer() { held.release(); }
  task<> end() {
    held.release();
    EXPECT_EQ(g.active(), 0);
    EXPECT_EQ(g.waiting(), 0);
    co_return;
  }
  weir::shared_governor g{1, {.name = "shared"}};
  weir::permit held;
};

struct of_channel : user_base {
  explicit of_channel(sim::world& in) : user_base(in) {
    auto [s, r] = weir::channel<int>(1);
    to.emplace(std::move(s));
    from.emplace(std::move(r));
  }
  task<> begin(weir::scope&) { co_await to->send(1); }
  task<> ask() {
    const weir::sender<int> mine = *to;
    co_await mine.send(2);
  }
  void answer() { (void)from->try_next(); }
  std::optional<weir::sender<int>> to;
  std::optional<weir::receiver<int>> from;
};

class worker {
 public:
  int get() const { return 1; }
  task<> nap() { co_await weir::sleep(1ms); }
};

/// An agent on loop "y", with room for one message besides the one that it handles.
struct of_agent : user_base {
  using user_base::user_base;
  task<> begin(weir::scope& s) {
    weir::agent_options options{};
    options.on = w.loop("y");
    options.capacity = 1;
    options.overflow = weir::overflow::wait;
    agent.emplace(weir::spawn_agent<worker>(s, options));
    co_return;
  }
  void answer() {}
  task<> end() {
    co_await agent->stop();
    co_await agent->join();
  }
  std::optional<weir::agent_ref<worker>> agent;
};

struct of_call : of_agent {
  using of_agent::of_agent;
  task<> ask() { EXPECT_EQ(co_await agent->call(&worker::get), 1); }
};

struct of_call_with_deadline : of_agent {
  using of_agent::of_agent;
  task<> ask() {
    auto late = co_await weir::settle(weir::with_timeout(1ms, agent->call(&worker::nap)));
    if (late.is_error()) {
      EXPECT_EQ(code_of(late.error()), weir::errc::timeout);
    }
  }
};

struct of_room : of_agent {
  using of_agent::of_agent;
  task<> ask() {
    for (int i = 0; i < 4; ++i) co_await agent->send(&worker::nap);
  }
};

struct of_stop : of_agent {
  using of_agent::of_agent;
  task<> ask() {
    (void)agent->stop();  // a future that is destroyed first
    co_await agent->stop();
  }
};

struct of_monitor : of_agent {
  using of_agent::of_agent;
  task<> ask() { EXPECT_EQ(co_await agent->monitor(), weir::ending::normal); }
  void answer() { (void)agent->stop(); }
};

// ------------------------------------------------------------------ the program

enum class meets : std::uint8_t { nothing, cancellation, crash };

struct ends {
  int values = 0;
  int cancellations = 0;
  int errors = 0;
  int all() const { return values + cancellations + errors; }
};

template <class User>
task<> ask_and_note(User& user, weir::cancel_token token, ends& e) {
  auto ask = [&] { return user.ask(); };
  auto how = co_await weir::settle(weir::with_token(token, ask));
  ++(how.is_value() ? e.values : how.is_cancelled() ? e.cancellations : e.errors);
}

task<> a_while() {
  for (std::uint64_t i = weir::random() % 8; i > 0; --i) co_await weir::yield();
}

/// One run: the answer and what meets it happen after a while each, in any order.
template <class User>
void explore_user(meets what) {
  for_each_order([&](sim::world& w) {
    ends e;
    w.run([&]() -> task<> {
      User user(w);
      weir::cancel_source stop;
      co_await weir::with_scope([&](weir::scope& s) -> task<> {
        co_await user.begin(s);
        start_on(w.loop("x"), [&] { return ask_and_note(user, stop.token(), e); });
        co_await weir::sleep(User::head_start);
        auto answer = [&]() -> task<> {
          co_await a_while();
          if constexpr (std::is_same_v<User, of_channel>) {
            user.answer();  // a receiver stays on its loop
          } else {
            w.loop("y").post([&] { user.answer(); });
          }
        };
        auto meet = [&]() -> task<> {
          co_await a_while();
          if (what == meets::cancellation) stop.cancel("enough");
          if (what == meets::crash) w.crash("x");
        };
        co_await weir::all(answer, meet);
        co_await weir::sleep(1s);
        co_await user.end();
      });
    });
    EXPECT_LE(e.all(), 1);
    if (what == meets::nothing) {
      EXPECT_EQ(e.values, 1);
    }
    if (what == meets::cancellation) {
      EXPECT_EQ(e.values + e.cancellations, 1);
    }
  });
}

template <class User>
class reply_users : public ::testing::Test {};
using all_users =
    ::testing::Types<of_suspend, of_dropped_suspend, of_on, of_blocking, of_shared_governor,
                     of_channel, of_call, of_call_with_deadline, of_room, of_stop, of_monitor>;
TYPED_TEST_SUITE(reply_users, all_users);

}  // namespace

TYPED_TEST(reply_users, an_answer_arrives) { explore_user<TypeParam>(meets::nothing); }

TYPED_TEST(reply_users, an_answer_and_a_cancellation_meet_and_one_of_them_counts) {
  explore_user<TypeParam>(meets::cancellation);
}

TYPED_TEST(reply_users, an_answer_and_a_crash_of_the_askers_loop_meet) {
  explore_user<TypeParam>(meets::crash);
}

// ------------------------------------------------------------------ the reply itself

namespace {

enum class deed : std::uint8_t { answer, decline };

/// The answering side: what a source does with a request that it holds.
void act(reply_probe& r, deed what) {
  const bool still_there = what == deed::answer ? r.claim() : r.decline();
  if (!still_there) return r.dispose();
  if (what == deed::answer) r.answer();
}

task<> ask_probe(reply_probe* r, weir::cancel_token token, bool& ended) {
  weir::detail::pending<reply_probe_wait> ask(r);
  (void)co_await weir::settle(weir::with_token(token, std::move(ask)));
  ended = true;
}

/// Asker on loop "x", answerer on loop "y" or on the asker's own.
void explore_reply(deed does, meets what, const char* where) {
  reply_probe_wait::lost = 0;
  for_each_order([&](sim::world& w) {
    int freed = 0;
    bool ended = false;
    w.run([&]() -> task<> {
      weir::cancel_source stop;
      auto* const r = new reply_probe(freed);
      start_on(w.loop("x"), [&, r] { return ask_probe(r, stop.token(), ended); });
      co_await weir::sleep(100us);
      auto answer = [&]() -> task<> {
        co_await a_while();
        if (what == meets::crash && where[0] == 'x') co_return act(*r, does);
        w.loop(where).post([&, r] { act(*r, does); });
      };
      auto meet = [&]() -> task<> {
        co_await a_while();
        if (what == meets::cancellation) stop.cancel("enough");
        if (what == meets::crash) w.crash("x");
      };
      co_await weir::all(answer, meet);
      co_await weir::sleep(1s);
    });
    EXPECT_EQ(freed, 1);
    if (what != meets::crash) {
      EXPECT_TRUE(ended);
    }
  });
}

}  // namespace

TEST(reply, an_answer_of_another_loop_arrives_once) {
  explore_reply(deed::answer, meets::nothing, "y");
}
TEST(reply, an_answer_at_home_arrives_at_once) { explore_reply(deed::answer, meets::nothing, "x"); }
TEST(reply, it_is_freed_once_when_an_answer_and_a_cancellation_meet) {
  explore_reply(deed::answer, meets::cancellation, "y");
  EXPECT_GT(reply_probe_wait::lost, 0);
}
TEST(reply, it_is_freed_once_when_an_answer_at_home_and_a_cancellation_meet) {
  explore_reply(deed::answer, meets::cancellation, "x");
}
TEST(reply, it_is_freed_once_when_an_answer_and_a_crash_meet) {
  explore_reply(deed::answer, meets::crash, "y");
}
TEST(reply, a_declined_one_is_freed_by_the_asker_when_it_leaves) {
  explore_reply(deed::decline, meets::cancellation, "y");
}
TEST(reply, a_declined_one_is_freed_once_when_its_loop_crashes) {
  explore_reply(deed::decline, meets::crash, "y");
}

TEST(reply, it_is_small_and_part_of_the_request) {
  static_assert(sizeof(weir::detail::reply_to<reply_probe_wait>) == 48);
  static_assert(sizeof(reply) == 24);
}

TEST(reply, one_that_was_never_asked_is_freed_by_its_asker) {
  int freed = 0;
  (new reply_probe(freed))->leave();
  EXPECT_EQ(freed, 1);
}
