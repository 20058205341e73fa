// SPDX-License-Identifier: MIT
// Cancelling processes, polite ones and others. Where a grace matters time is virtual, and moves
// when the test says so; the processes are real.
#include <fstream>
#include <optional>
#include <sstream>

#include "process_support.hpp"

using namespace weir_test;

namespace {

const std::string forever = "while :; do sleep 0.01; done";

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

/// Without timers: what is waited for happens in another process.
template <class F>
task<> until_it_holds(F condition) {
  while (!condition()) co_await weir::yield();
}

/// Gives the loop time to do what it could do now.
task<> many_turns() {
  for (int i = 0; i < 1000; ++i) co_await weir::yield();
}

/// A process in a scope that ends as soon as the process has printed something; what happens after
/// that is the ending.
class ending {
 public:
  ending(weir::scope& s, const io::command& what, io::process_options options,
         weir::duration grace = 1h)
      : what_(what), options_(options), grace_(grace), future_(s.spawn(go())) {}

  bool begun() const { return begun_; }
  io::process& process() { return *process_; }
  weir::child<void>& ended() { return future_; }

 private:
  task<> go() {
    auto body = [this](weir::scope& s) -> task<> {
      process_ = io::process::spawn(s, what_, options_);
      auto out = process_->out();
      co_await read_past(out, "up");
      begun_ = true;
    };
    co_await weir::with_scope({.grace = grace_}, body);
  }

  io::command what_;
  io::process_options options_;
  weir::duration grace_;
  bool begun_ = false;
  std::optional<io::process> process_;
  weir::child<void> future_;
};

/// Runs `body(scope)`. A grace of an hour is one that must not be used up.
template <class Body>
void with_real_time(Body body) {
  auto program = [&]() -> task<> { co_await weir::with_scope(body); };
  weir::run(program);
  EXPECT_TRUE(has_no_child());
}

/// Runs `body(scope, clock)` in virtual time.
template <class Body>
void with_virtual_time(Body body) {
  weir::test_clock clock;
  auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> { co_await body(s, clock); });
  };
  weir::run({.clock = &clock}, program);
  EXPECT_TRUE(has_no_child());
}

}  // namespace

TEST(process_end, a_polite_process_gets_sigterm_and_the_time_to_clean_up) {
  scratch_folder d;
  const std::string mark = d / "mark";
  with_real_time([&](weir::scope& s) -> task<> {
    ending e(s, script("trap 'echo cleaned > " + mark + "; exit 5' TERM; echo up; " + forever),
             {.grace = 1h});
    co_await e.ended();
    EXPECT_EQ(content(mark), "cleaned\n");
    EXPECT_EQ((co_await e.process().wait()).code(), 5);
  });
}

TEST(process_end, one_that_ignores_sigterm_is_killed_after_the_grace_and_not_before) {
  scratch_folder d;
  const std::string mark = d / "mark";
  with_virtual_time([&](weir::scope& s, weir::test_clock& clock) -> task<> {
    ending e(s, script("trap 'echo term > " + mark + "' TERM; echo up; " + forever),
             {.grace = 10s});
    co_await until_it_holds([&] { return content(mark) == "term\n"; });
    clock.advance(9s);
    co_await many_turns();
    EXPECT_FALSE(is_gone(e.process().pid()));
    clock.advance(1s);
    co_await e.ended();
    EXPECT_EQ((co_await e.process().wait()).signal(), SIGKILL);
  });
}

TEST(process_end, every_member_of_the_group_gets_sigterm) {
  scratch_folder d;
  const std::string mark = d / "mark";
  with_real_time([&](weir::scope& s) -> task<> {
    const std::string inner = "trap \"echo inner > " + mark + "; exit\" TERM; echo up; " + forever;
    ending e(s, script("sh -c '" + inner + "' & trap 'wait; exit' TERM; " + forever),
             {.grace = 1h});
    co_await e.ended();
    EXPECT_EQ(content(mark), "inner\n");
  });
}

TEST(process_end, what_is_left_of_the_group_after_its_leader_has_the_grace_too) {
  scratch_folder d;
  const std::string pids = d / "pids";
  with_virtual_time([&](weir::scope& s, weir::test_clock& clock) -> task<> {
    const std::string stubborn = "trap \"\" TERM; echo $$ > " + pids + "; echo up; " + forever;
    ending e(s, script("sh -c '" + stubborn + "' & wait"), {.grace = 10s});
    co_await until_it_holds([&] { return e.begun(); });
    co_await until_it_holds([&] { return is_gone(e.process().pid()); });
    const int left = std::stoi(content(pids));
    clock.advance(9s);
    co_await many_turns();
    EXPECT_FALSE(is_gone(left));
    clock.advance(1s);
    co_await e.ended();
    co_await until_it_holds([&] { return is_gone(left); });
  });
}

TEST(process_end, the_grace_is_not_used_up_when_the_last_of_the_group_has_ended) {
  with_real_time([&](weir::scope& s) -> task<> {
    const std::string slow = "trap \"sleep 0.05; exit\" TERM; echo up; " + forever;
    ending e(s, script("sh -c '" + slow + "' & wait"), {.grace = 1h});
    co_await e.ended();
  });
}

TEST(process_end, a_descendant_that_has_left_the_group_is_left_alone_and_holds_nothing_up) {
  scratch_folder d;
  const std::string pids = d / "pids";
  with_real_time([&](weir::scope& s) -> task<> {
    // It keeps the output open, too.
    const std::string daemon = "echo $$ > " + pids + "; echo up; exec sleep 1000";
    ending e(s, script("setsid sh -c '" + daemon + "' & wait"), {.grace = 1h});
    co_await e.ended();
    const int left = std::stoi(content(pids));
    EXPECT_FALSE(is_gone(left));
    ::kill(left, SIGKILL);
  });
}

TEST(process_end, a_stopped_process_is_continued_so_that_it_sees_the_signal) {
  scratch_folder d;
  const std::string mark = d / "mark";
  with_real_time([&](weir::scope& s) -> task<> {
    ending e(
        s, script("trap 'echo seen > " + mark + "; exit' TERM; echo up; kill -STOP $$; " + forever),
        {.grace = 1h});
    co_await e.ended();
    EXPECT_EQ(content(mark), "seen\n");
  });
}

TEST(process_end, its_last_words_do_not_block_it) {
  scratch_folder d;
  const std::string mark = d / "mark";
  with_real_time([&](weir::scope& s) -> task<> {
    ending e(s,
             script("trap 'head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; echo said > " +
                    mark + "; exit' TERM; echo up; " + forever),
             {.grace = 1h});
    co_await e.ended();
    EXPECT_EQ(content(mark), "said\n");
  });
}

TEST(process_end, without_grace_it_is_killed_at_once) {
  with_real_time([&](weir::scope& s) -> task<> {
    ending e(s, script("trap '' TERM; echo up; " + forever), {.grace = 0s});
    co_await e.ended();
    EXPECT_EQ((co_await e.process().wait()).signal(), SIGKILL);
  });
}

TEST(process_end, when_the_scopes_own_grace_is_over_it_is_killed_and_reaped) {
  scratch_folder d;
  const std::string mark = d / "mark";
  with_virtual_time([&](weir::scope& s, weir::test_clock& clock) -> task<> {
    ending e(s, script("trap 'echo term > " + mark + "' TERM; echo up; " + forever), {.grace = 1h},
             5s);
    co_await until_it_holds([&] { return content(mark) == "term\n"; });
    clock.advance(5s);
    co_await e.ended();
    EXPECT_EQ((co_await e.process().wait()).signal(), SIGKILL);
  });
}

TEST(process_end, one_whose_scope_ends_before_its_guard_has_run_is_ended_in_order) {
  auto program = []() -> task<> {
    std::optional<io::process> p;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      p = io::process::spawn(s, io::command("sleep", "1000"), {.grace = 1h});
      co_return;
    });
    EXPECT_TRUE(has_no_child());
    EXPECT_EQ((co_await p->wait()).signal(), SIGTERM);

    auto cancels = [&](weir::scope& s) -> task<> {
      p = io::process::spawn(s, io::command("sleep", "1000"), {.grace = 1h});
      s.cancel();
      p = io::process::spawn(s, io::command("sleep", "1000"), {.grace = 1h});  // cancelled already
      co_await weir::sleep(1h);
    };
    auto cancelled = co_await weir::settle(weir::with_scope(cancels));
    EXPECT_TRUE(cancelled.is_cancelled());
    EXPECT_TRUE(has_no_child());
    EXPECT_EQ((co_await p->wait()).signal(), SIGTERM);

    auto throws = [&](weir::scope& s) -> task<> {
      p = io::process::spawn(s, io::command("sleep", "1000"), {.grace = 1h});
      throw boom(1);
      co_return;
    };
    EXPECT_EQ(boom_of(co_await attempt([&] { return weir::with_scope(throws); })), 1);
    EXPECT_TRUE(has_no_child());
  };
  weir::run(program);
}

TEST(process_end, a_run_may_be_cancelled_by_a_limit_a_race_or_its_scope) {
  auto program = []() -> task<> {
    io::command c("sleep", "1000");
    auto late = co_await weir::settle(weir::with_timeout(1ms, io::process::run(c)));
    EXPECT_TRUE(holds<weir::timeout_error>(late.error()));
    EXPECT_TRUE(has_no_child());
    weir::event now;
    now.set();
    co_await weir::race(io::process::run(c), now.wait());
    EXPECT_TRUE(has_no_child());
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto never = s.spawn(io::process::run(c));
      auto soon = s.spawn(io::process::run(c));
      never.cancel();
      co_await weir::sleep(1ms);
      soon.cancel();
      EXPECT_TRUE((co_await weir::settle(soon)).is_cancelled());
    });
    EXPECT_TRUE(has_no_child());
    (void)io::process::run(c);  // not awaited: nothing is started
    EXPECT_TRUE(has_no_child());
  };
  weir::run(program);
}

TEST(process_end, a_run_that_fails_with_its_caller_is_joined_first) {
  auto program = []() -> task<> {
    auto fails = [](weir::scope& s) -> task<> {
      io::command c("cat");
      c.input(std::string(1 << 20, 'x'));
      s.spawn(io::process::run(io::command("sleep", "1000")));
      s.spawn(io::process::run(c, {.max_output = 2 << 20}));
      co_await weir::sleep(1ms);
      throw boom(2);
    };
    EXPECT_EQ(boom_of(co_await attempt([&] { return weir::with_scope(fails); })), 2);
    EXPECT_TRUE(has_no_child());
  };
  weir::run(program);
}
