// SPDX-License-Identifier: MIT
// Messages of agents: their order, that handlers do not overlap, and what arguments and results may
// be. Ends and errors have separate files.
#include <type_traits>

#include "agent_support.hpp"

using namespace weir_test;

// ------------------------------------------------------------------ order

FIBER_TEST_IN_EVERY_ORDER(agent, its_constructor_runs_on_the_loop_and_before_the_first_message) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {.name = "a"}, &log, "a");
    EXPECT_TRUE(log.empty());
    EXPECT_EQ(a.info().state, agent_state::starting);
    EXPECT_EQ(a.cast(&scribe::note, 1), sent::enqueued);
    EXPECT_TRUE(log.empty());
    co_await a.call(&scribe::note, 2);
    EXPECT_EQ(joined(log), "+a,a1,a2");
    co_await a.stop();
    EXPECT_EQ(joined(log), "+a,a1,a2,-a");
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent,
                          casts_and_calls_of_one_sender_are_handled_in_the_order_of_their_sending) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    a.cast(&scribe::note, 1);
    a.cast(&scribe::note, 2);
    co_await a.call(&scribe::note, 3);
    a.cast(&scribe::note, 4);
    co_await a.send(&scribe::note, 5);
    co_await a.call(&scribe::note, 6);
    co_await a.send(&scribe::note, 7);
    a.cast(&scribe::note, 8);
  });
  EXPECT_EQ(joined(log), "+a,a1,a2,a3,a4,a5,a6,a7,a8,-a");
}

namespace {

/// Remembers numbers; a number is its sender times 100 and a rising one.
class collector {
 public:
  explicit collector(numbers* all) : all_(all) {}
  void take(int n) { all_->push_back(n); }
  task<> take_slowly(int n) {
    co_await weir::yield();
    all_->push_back(n);
  }

 private:
  numbers* all_;
};

task<> send_in_many_ways(agent_ref<collector> to, int who, int count) {
  for (int i = 1; i <= count; ++i) {
    const int n = who * 100 + i;
    if (i % 3 == 0) {
      to.cast(&collector::take, n);
    } else if (i % 3 == 1) {
      co_await to.call(&collector::take_slowly, n);
    } else {
      co_await to.send(&collector::take_slowly, n);
    }
  }
}

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent, messages_of_several_senders_are_in_order_per_sender) {
  numbers got;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto c = weir::spawn_agent<collector>(s, {.name = "c"}, &got);
    for (int who = 1; who <= 3; ++who) s.spawn(send_in_many_ways(c, who, 7));
    co_await s.join();
  });
  for (int who = 1; who <= 3; ++who) {
    numbers of_one;
    for (int n : got)
      if (n / 100 == who) of_one.push_back(n);
    EXPECT_EQ(of_one, from_to(who * 100 + 1, who * 100 + 7));
  }
}
FIBER_TEST_IN_EVERY_ORDER(agent, asynchronous_handlers_never_overlap) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<scribe>(s, {}, &log, "a");
    a.cast(&scribe::note_after, 9ms, 1);
    a.cast(&scribe::note_after, 0ms, 2);
    a.cast(&scribe::note, 3);
    auto beside = s.spawn(a.call(&scribe::note_after, 5ms, 4));
    co_await beside;
    co_await a.call(&scribe::note, 5);
  });
  EXPECT_EQ(joined(log), "+a,<1,>1,<2,>2,a3,<4,>4,a5,-a");
}

TEST(agent, a_message_sent_in_a_handler_is_handled_after_it) {
  class echo {
   public:
    explicit echo(text_log* log) : log_(log) {}
    void begin() {
      log_->push_back("begin");
      weir::self<echo>().cast(&echo::again);
      log_->push_back("end");
    }
    void again() { log_->push_back("again"); }

   private:
    text_log* log_;
  };
  in_every_order([]() -> task<> {
    text_log log;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto e = weir::spawn_agent<echo>(s, {}, &log);
      co_await e.call(&echo::begin);
      co_await settled();
      EXPECT_EQ(joined(log), "begin,end,again");
    });
  });
}

SCOPE_TEST_IN_EVERY_ORDER(agent, a_call_that_is_not_awaited_sends_nothing) {
  auto c = weir::spawn_agent<counter>(s, {}, 5);
  {
    auto never = c.call(&counter::inc, 1);
    auto not_either = c.send(&counter::inc, 1);
    co_await settled();
  }
  EXPECT_EQ(co_await c.call(&counter::get), 5);
}

// ------------------------------------------------------------------ arguments and results

namespace {

class text_keeper {
 public:
  void add(const std::string& text) { all_ += text; }
  void add_moved(std::string&& text) { all_ += std::move(text); }
  void add_number(long n) { all_ += std::to_string(n); }
  void take(std::unique_ptr<int> p) { all_ += std::to_string(*p); }
  task<> take_later(std::unique_ptr<int> p) {
    co_await weir::sleep(1ms);
    all_ += std::to_string(*p);
  }
  std::unique_ptr<std::string> give() { return std::make_unique<std::string>(all_); }
  task<std::unique_ptr<std::string>> give_later() {
    co_await weir::sleep(1ms);
    co_return std::make_unique<std::string>(all_);
  }
  const std::string& view() const { return all_; }
  std::string& edit() { return all_; }
  std::size_t size() const noexcept { return all_.size(); }
  task<std::size_t> size_later() const {
    co_await weir::yield();
    co_return all_.size();
  }

 private:
  std::string all_;
};

}  // namespace

SCOPE_TEST_IN_EVERY_ORDER(agent, arguments_are_converted_when_they_are_sent) {
  auto k = weir::spawn_agent<text_keeper>(s, {});
  char text[] = "one ";
  k.cast(&text_keeper::add, text);
  text[0] = 'X';
  {
    const std::string gone = "two ";
    k.cast(&text_keeper::add, gone);
    std::string moved = "three ";
    k.cast(&text_keeper::add_moved, std::move(moved));
  }
  const short small = 4;
  k.cast(&text_keeper::add_number, small);
  auto call = k.call(&text_keeper::add, text);
  text[1] = '?';
  co_await std::move(call);
  EXPECT_EQ(co_await k.call(&text_keeper::view), "one two three 4Xne ");
}

SCOPE_TEST_IN_EVERY_ORDER(agent, results_that_are_references_are_copied) {
  auto k = weir::spawn_agent<text_keeper>(s, {});
  co_await k.call(&text_keeper::add, "before");
  auto seen = co_await k.call(&text_keeper::view);
  auto edited = co_await k.call(&text_keeper::edit);
  static_assert(std::is_same_v<decltype(seen), std::string>);
  static_assert(std::is_same_v<decltype(edited), std::string>);
  edited += "?";
  co_await k.call(&text_keeper::add, " after");
  EXPECT_EQ(seen, "before");
  EXPECT_EQ(co_await k.call(&text_keeper::view), "before after");
}

SCOPE_TEST_IN_EVERY_ORDER(agent, arguments_and_results_may_be_move_only) {
  auto k = weir::spawn_agent<text_keeper>(s, {});
  k.cast(&text_keeper::take, std::make_unique<int>(1));
  auto two = std::make_unique<int>(2);
  co_await k.send(&text_keeper::take_later, std::move(two));
  auto three = std::make_unique<int>(3);
  co_await k.call(&text_keeper::take_later, std::move(three));
  std::unique_ptr<std::string> all = co_await k.call(&text_keeper::give);
  EXPECT_EQ(*all, "123");
  std::unique_ptr<std::string> later = co_await k.call(&text_keeper::give_later);
  EXPECT_EQ(*later, "123");
}

SCOPE_TEST_IN_EVERY_ORDER(agent, handlers_may_be_const_and_noexcept) {
  auto k = weir::spawn_agent<text_keeper>(s, {});
  co_await k.call(&text_keeper::add, "four");
  EXPECT_EQ(co_await k.call(&text_keeper::size), 4U);
  EXPECT_EQ(co_await k.call(&text_keeper::size_later), 4U);
  EXPECT_EQ(k.cast(&text_keeper::size), sent::enqueued);
}

TEST(agent, handlers_may_be_those_of_a_base_class) {
  struct padding {
    virtual ~padding() = default;
    int unused = 0;
  };
  struct shop : padding, text_keeper {
    int sales() const { return 7; }
  };
  in_every_order([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<shop>(s, {.name = "shop"});
      a.cast(&text_keeper::add, "x");
      co_await a.send(&shop::add, "y");
      EXPECT_EQ(co_await a.call(&text_keeper::view), "xy");
      EXPECT_EQ(co_await a.call(&shop::sales), 7);
    });
  });
}

namespace {

struct fragile_box {
  int sum = 0;
  void put(brittle b) { sum += b.n; }
  task<> put_later(brittle b) {
    co_await weir::yield();
    sum += b.n;
  }
  int get() const { return sum; }
};

/// Makes the move with that number fail during one call; the agent must answer all others.
template <class Handler>
task<> call_with_fuse(Handler handler, int fuse) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto box = weir::spawn_agent<fragile_box>(s, {.name = "box"});
    const brittle argument(5);
    auto make = [&] { return box.call(handler, argument); };
    brittle::fuse = fuse;
    const std::exception_ptr error = co_await attempt(make);
    const bool burnt = brittle::fuse == 0;
    brittle::fuse = 0;
    EXPECT_EQ(boom_of(error), burnt ? 5 : -1) << what_of(error);
    EXPECT_EQ(co_await box.call(&fragile_box::get), burnt ? 0 : 5);
  });
}

}  // namespace
TEST(agent, whichever_move_of_an_argument_throws_the_caller_is_told_and_the_agent_goes_on) {
  for (int fuse = 1; fuse < 12; ++fuse) {
    SCOPED_TRACE("move " + std::to_string(fuse));
    in_order([&]() -> task<> { co_await call_with_fuse(&fragile_box::put, fuse); });
    in_order([&]() -> task<> { co_await call_with_fuse(&fragile_box::put_later, fuse); });
  }
}

TEST(agent, a_cast_throws_only_what_its_arguments_throw_and_then_sends_nothing) {
  for (int fuse = 1; fuse < 8; ++fuse) {
    SCOPED_TRACE("move " + std::to_string(fuse));
    in_order([&]() -> task<> {
      std::optional<agent_ref<fragile_box>> box;
      bool told = false;
      auto body = [&](weir::scope& s) -> task<> {
        box = weir::spawn_agent<fragile_box>(s, {.name = "box"});
        const brittle argument(5);
        brittle::fuse = fuse;
        told = boom_of(thrown_by([&] { return box->cast(&fragile_box::put, argument); })) == 5;
        co_await settled();
      };
      const std::exception_ptr error = co_await error_of_scope(body);
      const bool burnt = std::exchange(brittle::fuse, 0) == 0;
      // The sender is told, or it is the error of a handler, which is a crash.
      EXPECT_EQ(boom_of(error), burnt && !told ? 5 : -1) << what_of(error);
      EXPECT_EQ(box->info().handled, told ? 0U : 1U);
    });
  }
}

FIBER_TEST_IN_EVERY_ORDER(agent, arguments_of_messages_that_are_never_handled_are_destroyed) {
  struct sink {
    void take(counted_value) {}
    task<> nap(weir::duration d) { co_await weir::sleep(d); }
  };
  int alive = 0;
  co_await weir::with_scope(grace_of(10ms), [&](weir::scope& s) -> task<> {
    auto a = weir::spawn_agent<sink>(s, {});
    a.cast(&sink::nap, 1h);
    for (int i = 0; i < 3; ++i) a.cast(&sink::take, counted_value(i, alive));
    co_await settled();
    EXPECT_EQ(alive, 3);
  });
  EXPECT_EQ(alive, 0);
}

// ------------------------------------------------------------------ self and the own scope

namespace {

class selfish {
 public:
  selfish() { weir::self<selfish>().cast(&selfish::hear, 1); }
  void hear(int n) { heard_ = heard_ * 10 + n; }
  task<> say_later() {
    co_await weir::sleep(1ms);
    weir::self<selfish>().cast(&selfish::hear, 3);
  }
  std::error_code wrong_type() {
    return code_thrown_by([] { return weir::self<counter>(); });
  }
  int heard() const { return heard_; }

 private:
  int heard_ = 0;
};

std::error_code code_of_self() {
  return code_thrown_by([] { return weir::self<selfish>(); });
}

}  // namespace

SCOPE_TEST_IN_EVERY_ORDER(agent, self_is_the_agent_in_its_constructor_and_handlers) {
  auto a = weir::spawn_agent<selfish>(s, {.name = "a"});
  co_await settled();
  EXPECT_EQ(co_await a.call(&selfish::heard), 1);
  co_await a.call(&selfish::say_later);
  co_await settled();
  EXPECT_EQ(co_await a.call(&selfish::heard), 13);
  EXPECT_EQ(co_await a.call(&selfish::wrong_type), errc::no_current_agent);
}

TEST(agent, self_is_refused_where_there_is_no_agent) {
  EXPECT_EQ(code_of_self(), errc::no_current_agent);
  in_every_order([]() -> task<> {
    EXPECT_EQ(code_of_self(), errc::no_current_agent);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto a = weir::spawn_agent<selfish>(s, {});
      co_await a.call(&selfish::say_later);
      EXPECT_EQ(code_of_self(), errc::no_current_agent);
    });
  });
}

namespace {

/// Has children of its own, which use it.
class parent_with_service {
 public:
  parent_with_service(weir::scope& own, text_log* log) : own_(own), log_(log) {
    own_.background([this]() -> task<> {
      const end_note ended(*log_, "service ended");
      for (;;) {
        co_await weir::sleep(1ms);
        ++beats_;
      }
    });
  }
  parent_with_service(const parent_with_service&) = delete;
  parent_with_service& operator=(const parent_with_service&) = delete;
  ~parent_with_service() { log_->push_back("-parent"); }
  int beats() const { return beats_; }
  void start_child(weir::duration d) {
    own_.spawn([this, d]() -> task<> {
      co_await weir::sleep(d);
      log_->push_back("child done");
    });
  }
  void start_failing_child() {
    own_.spawn([]() -> task<> {
      co_await weir::sleep(1ms);
      throw boom(3);
    });
  }

 private:
  weir::scope& own_;
  text_log* log_;
  int beats_ = 0;
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(agent,
                          a_constructor_that_takes_a_scope_gets_one_that_ends_before_the_agent) {
  text_log log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto p = weir::spawn_agent<parent_with_service>(s, {.name = "p"}, &log);
    co_await weir::sleep(5ms);
    EXPECT_GE(co_await p.call(&parent_with_service::beats), 4);
    co_await p.call(&parent_with_service::start_child, 3ms);
    co_await weir::sleep(5ms);
    EXPECT_EQ(joined(log), "child done");
    co_await p.stop();
    EXPECT_EQ(joined(log), "child done,service ended,-parent");
  });
}

FIBER_TEST_IN_EVERY_ORDER(agent, a_failing_child_of_its_own_scope_is_a_crash) {
  text_log log;
  std::optional<agent_ref<parent_with_service>> p;
  auto body = [&](weir::scope& s) -> task<> {
    p = weir::spawn_agent<parent_with_service>(s, {.name = "p"}, &log);
    p->cast(&parent_with_service::start_failing_child);
    p->cast(&parent_with_service::start_child, 1h);
    co_await weir::sleep(1000h);
  };
  EXPECT_EQ(boom_of(co_await error_of_scope(body)), 3);
  EXPECT_EQ(co_await p->monitor(), ending::crashed);
  EXPECT_EQ(joined(log), "service ended,-parent");
}
