// SPDX-License-Identifier: MIT
// run with handle_signals: the first signal cancels, the second ends the grace, the third aborts;
// SIGQUIT prints the dump. Each test sends its signals in a process of its own.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;
using kind = weir::cancel_kind;

namespace {

void send(int signal) { ::kill(::getpid(), signal); }

/// Ends the process with 0 if everything it had to show was shown.
[[noreturn]] void leave(bool shown) {
  std::fflush(nullptr);
  ::_exit(shown ? 0 : 1);
}

/// Runs `op` with signals handled; true if it ended with cancelled_error.
template <class Op>
bool cancelled_by_signal(Op op, weir::duration grace = 1h) {
  try {
    weir::run({.name = "app", .handle_signals = true, .grace = grace}, std::move(op));
  } catch (const weir::cancelled_error&) {
    return true;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  return false;
}

void first_signal(int signal) {
  text_log log;
  bool by_signal = false;
  bool cancelled = cancelled_by_signal([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.defer([&](const weir::outcome_view& o) {
        by_signal = o.is_cancelled() && o.reason().chain().front().kind == kind::signal;
        log.push_back("last");
      });
      s.defer([&]() -> task<> {
        co_await weir::sleep(1ms);
        log.push_back("slow");
      });
      send(signal);
      co_await weir::sleep(1h);
      log.push_back("NEVER");
    });
  });
  leave(cancelled && by_signal && joined(log) == "slow,last");
}

void second_signal() {
  text_log log;
  bool cancelled = cancelled_by_signal([&]() -> task<> {
    co_await weir::with_scope({.grace = 1h}, [&](weir::scope& s) -> task<> {
      s.defer([&] { log.push_back("plain"); });
      s.defer([&]() -> task<> {
        end_note gone(log, "cut short");
        send(SIGTERM);
        co_await weir::sleep(1h);
        log.push_back("NEVER");
      });
      send(SIGINT);
      co_await weir::sleep(1h);
    });
  });
  leave(cancelled && joined(log) == "cut short,plain");
}

void third_signal_with_a_stuck_loop() {
  cancelled_by_signal([]() -> task<> {
    for (;;) send(SIGTERM);
    co_return;
  });
  leave(false);
}

void grace_over() {
  cancelled_by_signal(
      []() -> task<> {
        co_await weir::with_scope([](weir::scope& s) -> task<> {
          auto stuck = []() -> task<> {
            std::optional<weir::resumer<void>> kept;
            co_await weir::suspend<void>([&](weir::resumer<void> r) {
              kept.emplace(std::move(r));
              return [] { return weir::cancel_result::no; };
            });
          };
          s.spawn(stuck, {.name = "stuck fiber"});
          co_await weir::yield();
          co_await weir::yield();
          send(SIGTERM);
          co_await weir::sleep(1h);
        });
      },
      1ms);
  leave(false);
}

bool handler_called = false;

void handlers_are_restored() {
  struct sigaction mine{};
  mine.sa_handler = [](int) { handler_called = true; };
  ::sigaction(SIGTERM, &mine, nullptr);
  ::sigaction(SIGINT, &mine, nullptr);
  weir::run({.handle_signals = true}, ready(1));
  struct sigaction term{}, interrupt{};
  ::sigaction(SIGTERM, nullptr, &term);
  ::sigaction(SIGINT, nullptr, &interrupt);
  bool same = term.sa_handler == mine.sa_handler && interrupt.sa_handler == mine.sa_handler;
  std::raise(SIGTERM);
  leave(same && handler_called);
}

void without_handling() {
  struct sigaction mine{};
  mine.sa_handler = [](int) { handler_called = true; };
  ::sigaction(SIGTERM, &mine, nullptr);
  bool went_on = false;
  weir::run([&]() -> task<> {
    std::raise(SIGTERM);
    co_await weir::sleep(1ms);
    went_on = true;
  });
  leave(went_on && handler_called);
}

/// Reads what the process has written to its own stderr until now.
void read_more(int from, std::string& text) {
  char buffer[4096];
  for (ssize_t n; (n = ::read(from, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
}

void dump_on_quit() {
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK) != 0) leave(false);
  ::dup2(ends[1], STDERR_FILENO);
  std::string text;
  weir::run({.handle_signals = true}, [&]() -> task<> {
    co_await weir::with_scope({.name = "lighthouse"}, [&](weir::scope& s) -> task<> {
      auto keeper = s.spawn(after(1h, 1), {.name = "keeper"});
      co_await weir::yield();
      send(SIGQUIT);
      while (!contains(text, "lighthouse") || !contains(text, "keeper")) {
        co_await weir::yield();
        read_more(ends[0], text);
      }
      keeper.cancel();
    });
  });
  leave(contains(text, "sleep"));
}

/// The last thing that a loop does, so that it does not look at signals any more.
void quit_at_the_end() {
  int ends[2];
  if (::pipe2(ends, O_NONBLOCK) != 0) leave(false);
  ::dup2(ends[1], STDERR_FILENO);
  weir::run({.handle_signals = true}, []() -> task<> {
    send(SIGQUIT);
    co_return;
  });
  weir::run({.handle_signals = true}, []() -> task<> {
    for (int i = 0; i < 1000; ++i) co_await weir::yield();
    co_await weir::sleep(1ms);
  });
  std::string text;
  read_more(ends[0], text);
  leave(text.empty());
}

}  // namespace

TEST(signal_death, a_sigquit_that_no_loop_took_is_not_answered_by_a_later_run) {
  EXPECT_EXIT(quit_at_the_end(), testing::ExitedWithCode(0), "");
}
TEST(signal_death, the_first_sigterm_cancels_the_root_and_lets_it_clean_up) {
  EXPECT_EXIT(first_signal(SIGTERM), testing::ExitedWithCode(0), "");
}
TEST(signal_death, the_first_sigint_does_the_same) {
  EXPECT_EXIT(first_signal(SIGINT), testing::ExitedWithCode(0), "");
}
TEST(signal_death, the_second_signal_ends_the_grace_of_all_scopes) {
  EXPECT_EXIT(second_signal(), testing::ExitedWithCode(0), "");
}
TEST(signal_death, the_third_signal_aborts_also_a_loop_that_is_stuck) {
  EXPECT_EXIT(third_signal_with_a_stuck_loop(), testing::KilledBySignal(SIGABRT), "");
}

TEST(signal_death, when_the_grace_is_over_the_dump_is_printed_and_the_process_ends_with_124) {
  EXPECT_EXIT(grace_over(), testing::ExitedWithCode(124), "stuck fiber");
}

TEST(signal_death, earlier_handlers_are_restored) {
  EXPECT_EXIT(handlers_are_restored(), testing::ExitedWithCode(0), "");
}

TEST(signal_death, without_handle_signals_they_are_left_alone) {
  EXPECT_EXIT(without_handling(), testing::ExitedWithCode(0), "");
}

TEST(signal_death, sigquit_prints_the_dump_and_the_program_goes_on) {
  EXPECT_EXIT(dump_on_quit(), testing::ExitedWithCode(0), "");
}
