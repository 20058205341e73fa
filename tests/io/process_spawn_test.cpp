// SPDX-License-Identifier: MIT
// process::spawn: talking to a process while it runs, and who owns it.
#include <optional>
#include <sstream>

#include "process_support.hpp"

using namespace weir_test;

namespace {

/// Runs `body(scope)` on a loop.
template <class Body>
void in_process_scope(Body body) {
  auto program = [&]() -> task<> { co_await weir::with_scope(body); };
  weir::run(program);
  EXPECT_TRUE(has_no_child());
}

}  // namespace

TEST(process_spawn, a_conversation_goes_both_ways_until_its_input_ends) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("cat"));
    EXPECT_GT(p.pid(), 0);
    auto out = p.out();
    co_await p.write("one\n");
    EXPECT_EQ(co_await out.next(), "one\n");
    const std::string two = "two\n";
    co_await p.write(std::as_bytes(std::span(two)));
    EXPECT_EQ(co_await out.next(), "two\n");
    p.close_input();
    EXPECT_EQ(co_await out.next(), std::nullopt);
    EXPECT_EQ(co_await text_of(p.err()), "");
    const io::exit_status how = co_await p.wait();
    EXPECT_TRUE(how.ok());
    EXPECT_TRUE((co_await p.wait()).ok());
    EXPECT_EQ(co_await code_after([&] { return p.write("x"); }), errc::closed);
  });
}

TEST(process_spawn, given_input_is_fed_and_ends) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("cat").input(std::string(200'000, 'x')));
    EXPECT_EQ((co_await text_of(p.out())).size(), 200'000U);
    EXPECT_EQ(co_await code_after([&] { return p.write("more"); }), errc::closed);
    EXPECT_TRUE((co_await p.wait()).ok());
  });
}

TEST(process_spawn, what_it_wrote_can_be_read_after_it_has_ended) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, script("echo out; echo err >&2; exit 4"));
    EXPECT_EQ((co_await p.wait()).code(), 4);
    EXPECT_EQ(co_await text_of(p.out()), "out\n");
    EXPECT_EQ(co_await text_of(p.err()), "err\n");
  });
}

TEST(process_spawn, a_process_that_has_closed_its_input_says_so_to_the_writer) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, script("exec <&-; echo closed; sleep 100"));
    auto out = p.out();
    EXPECT_EQ(co_await out.next(), "closed\n");
    EXPECT_EQ(co_await code_after([&] { return p.write("x"); }), std::errc::broken_pipe);
  });
}

TEST(process_spawn, output_that_is_not_read_stops_it) {
  in_process_scope([](weir::scope& s) -> task<> {
    // It prints on standard error what it has written, and cannot get far.
    io::process p = io::process::spawn(
        s, script("i=0; while [ $i -lt 40 ]; do head -c 8192 /dev/zero; i=$((i+1)); echo $i >&2; "
                  "done; echo done >&2"));
    auto err = p.err();
    std::string seen;
    while (!contains(seen, "7\n")) {
      auto piece = co_await err.next();
      EXPECT_TRUE(piece);
      seen += piece.value_or("7\n");
    }
    // The pipe has 64 KiB; a pull that would wait for the next number finds none.
    while (true) {
      auto more = co_await weir::settle(weir::with_timeout(50ms, err.next()));
      if (!more.is_value()) break;
      seen += *more.value();
    }
    EXPECT_FALSE(contains(seen, "done"));
    EXPECT_EQ((co_await text_of(p.out())).size(), 40U * 8192);
    EXPECT_TRUE(contains(co_await text_of(std::move(err)), "done"));
  });
}

TEST(process_spawn, a_cancelled_pull_loses_nothing) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("cat"));
    auto out = p.out();
    for (int i = 0; i < 5; ++i)
      EXPECT_FALSE((co_await weir::settle(weir::with_timeout(1ms, out.next()))).is_value());
    co_await p.write("kept");
    EXPECT_EQ(co_await out.next(), "kept");
  });
}

TEST(process_spawn, a_cancelled_wait_leaves_it_alone_and_many_may_wait) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("cat"));
    EXPECT_FALSE((co_await weir::settle(weir::with_timeout(1ms, p.wait()))).is_value());
    auto one = s.spawn(p.wait());
    auto two = s.spawn(p.wait());
    co_await weir::yield();
    p.close_input();
    EXPECT_TRUE((co_await one).ok());
    EXPECT_TRUE((co_await two).ok());
  });
}

TEST(process_spawn, the_scopes_end_ends_and_reaps_it) {
  int pid = 0;
  std::optional<io::process> kept;
  auto program = [&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      kept = io::process::spawn(s, io::command("sleep", "1000"));
      pid = kept->pid();
      EXPECT_FALSE(is_gone(pid));
      co_return;
    });
    EXPECT_TRUE(has_no_child());
    const io::exit_status how = co_await kept->wait();
    EXPECT_EQ(how.signal(), SIGTERM);
    EXPECT_EQ(co_await text_of(kept->out()), "");
  };
  weir::run(program);
}

TEST(process_spawn, one_whose_handle_is_dropped_belongs_to_the_scope_and_is_reaped_when_it_ends) {
  in_process_scope([](weir::scope& s) -> task<> {
    (void)io::process::spawn(s, io::command("true"));
    co_await wait_until([] { return has_no_child(); });
  });
}

TEST(process_spawn, in_a_dump_it_is_a_child_of_the_scope) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("sleep", "1000"));
    co_await weir::yield();
    co_await weir::yield();
    std::ostringstream tree;
    weir::dump(tree);
    EXPECT_TRUE(contains(tree.str(), "process 'sleep' (" + std::to_string(p.pid()) + ")"))
        << tree.str();
  });
}

TEST(process_spawn, a_scope_that_is_closed_starts_nothing) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      co_await s.join();
      EXPECT_EQ(code_of(thrown_by([&] { return io::process::spawn(s, io::command("true")); })),
                errc::scope_closed);
      EXPECT_EQ(code_of(thrown_by([&] { return io::process::spawn(s, io::command("true")); })),
                errc::scope_closed);
    });
  };
  weir::run(program);
  EXPECT_TRUE(has_no_child());
}

TEST(process_spawn, a_moved_from_handle_is_closed) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("cat"));
    io::process q = std::move(p);
    EXPECT_EQ(code_of(thrown_by([&] { return p.pid(); })), errc::closed);   // NOLINT
    EXPECT_EQ(code_of(thrown_by([&] { return p.wait(); })), errc::closed);  // NOLINT
    q.close_input();
    EXPECT_TRUE((co_await q.wait()).ok());
  });
}

TEST(process_spawn, if_other_code_reaps_it_the_lost_status_is_an_error) {
  in_process_scope([](weir::scope& s) -> task<> {
    io::process p = io::process::spawn(s, io::command("cat"));
    ::kill(p.pid(), SIGKILL);
    EXPECT_EQ(::waitpid(p.pid(), nullptr, 0), p.pid());
    const std::exception_ptr failure = co_await attempt([&] { return p.wait(); });
    EXPECT_EQ(code_of(failure), std::errc::no_child_process);
    EXPECT_TRUE(contains(what_of(failure), "'cat'")) << what_of(failure);
  });
}
