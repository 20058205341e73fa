// SPDX-License-Identifier: MIT
// io::signals on one thread: what is seen, what is refused, and which disposition comes back.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include <weir/io.hpp>

#include "support/test_support.hpp"

using namespace test_support;
using weir::errc;
using weir::task;
namespace io = weir::io;

namespace {

volatile std::sig_atomic_t earlier_calls = 0;
void earlier_handler(int) { earlier_calls = earlier_calls + 1; }
void other_handler(int) {}

using signal_handler = void (*)(int);

signal_handler handler_of(int number) {
  struct sigaction now{};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler;
}

/// Sets a disposition for one test.
class disposition {
 public:
  disposition(int number, signal_handler h) : number_(number) {
    struct sigaction mine{};
    mine.sa_handler = h;
    ::sigaction(number, &mine, &before_);
  }
  disposition(const disposition&) = delete;
  disposition& operator=(const disposition&) = delete;
  ~disposition() { ::sigaction(number_, &before_, nullptr); }

 private:
  int number_;
  struct sigaction before_{};
};

/// Runs a program on a real loop and in a simulation: signals are real in both.
template <class F>
void really_and_simulated(F program) {
  {
    SCOPED_TRACE("real");
    weir::run(program);
  }
  SCOPED_TRACE("simulated");
  weir_test::in_order(program);
}

}  // namespace

TEST(signals, are_in_force_from_the_call_and_every_stream_sees_them) {
  const disposition mine(SIGHUP, earlier_handler);
  earlier_calls = 0;
  really_and_simulated([]() -> task<> {
    auto a = io::signals(SIGHUP, SIGUSR1);
    auto b = io::signals(SIGHUP);
    ::raise(SIGHUP);  // before any pull
    EXPECT_EQ(co_await a.next(), SIGHUP);
    EXPECT_EQ(co_await b.next(), SIGHUP);
    ::kill(::getpid(), SIGUSR1);
    EXPECT_EQ(co_await a.next(), SIGUSR1);
  });
  EXPECT_EQ(earlier_calls, 0);
  EXPECT_EQ(handler_of(SIGHUP), &earlier_handler);
}

TEST(signals, wake_a_fiber_that_waits) {
  really_and_simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto stream = io::signals(SIGUSR1, SIGUSR2);
      int seen = 0;
      auto reader = s.spawn([&]() -> task<int> {
        int sum = 0;
        for (; seen < 3; ++seen) sum += *co_await stream.next();
        co_return sum;
      });
      int sent = 0;
      for (const int number : {SIGUSR1, SIGUSR2, SIGUSR1}) {
        while (seen < sent) co_await weir::yield();  // what is not pulled would be merged
        ::raise(number);
        ++sent;
      }
      EXPECT_EQ(co_await reader, 2 * SIGUSR1 + SIGUSR2);
    });
  });
}

TEST(signals, repeats_are_merged_and_different_ones_keep_their_order) {
  really_and_simulated([]() -> task<> {
    auto stream = io::signals(SIGHUP, SIGUSR1, SIGUSR2);
    for (const int number : {SIGUSR2, SIGHUP, SIGUSR2, SIGUSR1, SIGHUP}) ::raise(number);
    EXPECT_EQ(co_await stream.next(), SIGUSR2);
    EXPECT_EQ(co_await stream.next(), SIGHUP);
    ::raise(SIGUSR2);  // it was pulled, so this is another one
    EXPECT_EQ(co_await stream.next(), SIGUSR1);
    EXPECT_EQ(co_await stream.next(), SIGUSR2);
    auto more = co_await weir::race(stream.next(), weir::sleep(1ms));
    EXPECT_EQ(more.index(), 1U);
  });
}

TEST(signals, all_that_a_program_may_have_go_around_more_than_once) {
  really_and_simulated([]() -> task<> {
    auto stream = io::signals(SIGRTMIN, SIGRTMIN + 1, SIGRTMAX, SIGUSR1);
    for (int i = 0; i < 100; ++i) {
      for (const int number : {SIGRTMAX, SIGUSR1, SIGRTMIN}) ::raise(number);
      EXPECT_EQ(co_await stream.next(), SIGRTMAX);
      EXPECT_EQ(co_await stream.next(), SIGUSR1);
      EXPECT_EQ(co_await stream.next(), SIGRTMIN);
    }
  });
}

TEST(signals, the_same_number_twice_is_one) {
  really_and_simulated([]() -> task<> {
    {
      auto stream = io::signals(SIGUSR1, SIGUSR1);
      ::raise(SIGUSR1);
      EXPECT_EQ(co_await stream.next(), SIGUSR1);
    }
    EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
  });
}

TEST(signals, the_earlier_disposition_is_back_in_whatever_order_streams_end) {
  const disposition hup(SIGHUP, earlier_handler);
  const disposition usr(SIGUSR1, SIG_IGN);
  really_and_simulated([]() -> task<> {
    for (int order = 0; order < 2; ++order) {
      std::optional<weir::stream<int>> a(io::signals(SIGHUP, SIGUSR1));
      std::optional<weir::stream<int>> b(io::signals(SIGHUP));
      std::optional<weir::stream<int>>& first = order == 0 ? a : b;
      std::optional<weir::stream<int>>& last = order == 0 ? b : a;
      first.reset();
      EXPECT_NE(handler_of(SIGHUP), &earlier_handler);
      ::raise(SIGHUP);
      EXPECT_EQ(co_await last->next(), SIGHUP);
      last.reset();
      EXPECT_EQ(handler_of(SIGHUP), &earlier_handler);
      EXPECT_EQ(handler_of(SIGUSR1), SIG_IGN);
    }
    earlier_calls = 0;
    ::raise(SIGHUP);
    EXPECT_EQ(earlier_calls, 1);
  });
}

TEST(signals, a_disposition_that_the_program_has_set_meanwhile_stays) {
  const disposition mine(SIGHUP, earlier_handler);
  {
    const auto stream = io::signals(SIGHUP);
    std::signal(SIGHUP, other_handler);
  }
  EXPECT_EQ(handler_of(SIGHUP), &other_handler);
}

TEST(signals, a_stream_that_is_closed_or_dropped_unpulled_ends_it) {
  really_and_simulated([]() -> task<> {
    auto closed = io::signals(SIGUSR1);
    co_await closed.close();
    EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
    EXPECT_EQ(co_await closed.next(), std::nullopt);
    {
      const auto dropped = io::signals(SIGUSR1);
    }
    EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
  });
}

TEST(signals, interrupted_calls_are_restarted_and_errno_is_kept) {
  really_and_simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto stream = io::signals(SIGUSR1);
      struct sigaction now{};
      ::sigaction(SIGUSR1, nullptr, &now);
      EXPECT_NE(now.sa_flags & SA_RESTART, 0);
      auto reader = s.spawn(stream.next());
      co_await weir::yield();
      errno = 77;
      ::raise(SIGUSR1);
      EXPECT_EQ(errno, 77);
      EXPECT_EQ(co_await reader, SIGUSR1);
    });
  });
}

TEST(signals, what_is_not_a_signal_or_cannot_be_handled_is_refused) {
  for (const int number :
       {0, -1, 65, 1000, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, 32}) {
    const auto error = thrown_by([&] { return io::signals(SIGUSR1, number); });
    EXPECT_EQ(code_of(error), errc::invalid_argument) << number;
    EXPECT_TRUE(contains(what_of(error), std::to_string(number))) << what_of(error);
    EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);  // nothing of it is in force
  }
}

TEST(signals, one_that_handle_signals_has_is_busy) {
  weir::run({.handle_signals = true}, []() -> task<> {
    for (const int number : {SIGINT, SIGTERM, SIGQUIT}) {
      const auto error = thrown_by([&] { return io::signals(SIGUSR1, number); });
      EXPECT_EQ(code_of(error), errc::busy);
      EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
    }
    auto other = io::signals(SIGHUP);
    ::raise(SIGHUP);
    EXPECT_EQ(co_await other.next(), SIGHUP);
  });
  const auto free_again = io::signals(SIGINT);
}

TEST(signals, handle_signals_is_refused_while_a_stream_has_one_of_its_signals) {
  std::optional<weir::stream<int>> stream(io::signals(SIGTERM));
  bool ran = false;
  const auto start = [&] {
    weir::run({.handle_signals = true}, [&]() -> task<> {
      ran = true;
      co_return;
    });
    return 0;
  };
  EXPECT_EQ(code_of(thrown_by(start)), errc::busy);
  EXPECT_FALSE(ran);
  stream.reset();
  start();
  EXPECT_TRUE(ran);
  EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
}

TEST(signals, a_stream_may_be_made_before_its_loop_and_outlive_it) {
  auto stream = io::signals(SIGUSR1);
  ::raise(SIGUSR1);
  weir::run([&]() -> task<> { EXPECT_EQ(co_await stream.next(), SIGUSR1); });
  ::raise(SIGUSR1);
  weir::run([&]() -> task<> { EXPECT_EQ(co_await stream.next(), SIGUSR1); });
}

TEST(signals, a_stream_may_end_while_its_wake_up_is_under_way) {
  really_and_simulated([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      std::optional<weir::stream<int>> stream(io::signals(SIGUSR1));
      auto reader = s.spawn(stream->next());
      co_await weir::yield();
      co_await weir::yield();
      ::raise(SIGUSR1);
      reader.cancel();
      co_await weir::settle(reader);
      stream.reset();
    });
  });
}

TEST(signals, a_loop_may_end_while_a_wake_up_is_under_way) {
  auto stream = io::signals(SIGUSR1);
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto reader = s.spawn(stream.next());
      co_await weir::yield();
      co_await weir::yield();
      reader.cancel();
      ::raise(SIGUSR1);
    });
    ::raise(SIGUSR1);
  });
  weir::run([&]() -> task<> { EXPECT_EQ(co_await stream.next(), SIGUSR1); });
}

SCOPE_TEST_IN_EVERY_ORDER(signals, a_pull_that_loses_a_race_loses_no_signal) {
  auto stream = io::signals(SIGUSR1);
  s.spawn([&]() -> task<> {
    co_await weir::sleep(1ms);
    ::raise(SIGUSR1);
  });
  bool seen = false;
  for (int lost = 0; lost < 5 && !seen; ++lost) {
    auto result = co_await weir::race(stream.next(), weir::sleep(500us));
    seen = result.index() == 0;
  }
  if (!seen) {
    EXPECT_EQ(co_await stream.next(), SIGUSR1);
  }
  auto more = co_await weir::race(stream.next(), weir::sleep(1ms));
  EXPECT_EQ(more.index(), 1U);
}

TEST(signals, in_a_simulation_a_signal_that_the_program_does_not_raise_is_a_deadlock) {
  const auto waits = [] {
    weir_test::in_order([]() -> task<> {
      auto stream = io::signals(SIGUSR1);
      co_await stream.next();
    });
    return 0;
  };
  EXPECT_EQ(code_of(thrown_by(waits)), errc::deadlock);
}

TEST(signals, a_forked_child_shares_nothing_with_its_parent) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      std::optional<weir::stream<int>> stream(io::signals(SIGUSR1));
      auto reader = s.spawn(stream->next());
      co_await weir::yield();
      const pid_t child = ::fork();
      if (child == 0) {
        ::raise(SIGUSR1);
        auto own = std::optional<weir::stream<int>>(io::signals(SIGUSR2));
        own.reset();
        ::_exit(handler_of(SIGUSR2) == SIG_DFL ? 0 : 1);
      }
      int status = -1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
      for (int i = 0; i < 5; ++i) co_await weir::yield();
      EXPECT_FALSE(reader.done());
      ::raise(SIGUSR1);
      EXPECT_EQ(co_await reader, SIGUSR1);
    });
  });
}

TEST(signals, a_dump_says_that_a_fiber_waits_for_signals) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      auto stream = io::signals(SIGUSR1);
      auto reader = s.spawn(stream.next());
      for (int i = 0; i < 3; ++i) co_await weir::yield();
      std::ostringstream out;
      weir::dump(out);
      EXPECT_TRUE(contains(out.str(), "signals")) << out.str();
      reader.cancel();
      co_await s.idle();  // the stream is this body's
    });
  });
}
