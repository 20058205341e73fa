// SPDX-License-Identifier: MIT
// WebSocket connections between weir and weir, and with a peer that is made by hand.
#include <weir/ws.hpp>

#include <vector>

#include "io/io_support.hpp"
#include "io/ws_peer.hpp"

namespace {

using namespace ws_test;
using test_support::code_after;
using weir::errc;
using ws_peer = ws_test::peer;

std::string pattern_of(std::size_t n, bool text) {
  std::string out(n, '\0');
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<char>(text ? 'a' + i % 23 : i * 7 % 256);
  return out;
}

task<> read_to_end(ws::connection& c) {
  for (bool more = true; more;) {
    const auto m = co_await c.read();
    more = m.has_value();
  }
}

}  // namespace

FIBER_TEST(ws, messages_arrive_whole_in_both_directions_and_kinds) {
  co_await with_ws(echo, [](int port) -> task<> {
    auto c = co_await ws::connect(url_of(port));
    for (const std::size_t n : {0U, 1U, 125U, 126U, 65535U, 65536U, 200'000U, 1U << 20U}) {
      const std::string text = pattern_of(n, true);
      const std::string bytes = pattern_of(n, false);
      co_await weir::all(c.write_text(text), [&]() -> task<> {
        const auto m = co_await c.read();
        EXPECT_TRUE(m && m->text() && !m->binary() && m->data() == text) << n;
      });
      co_await weir::all(c.write_binary(bytes), [&]() -> task<> {
        const auto m = co_await c.read();
        EXPECT_TRUE(m && m->binary() && !m->text() && m->data() == bytes) << n;
      });
    }
    co_await c.close();
    EXPECT_EQ(c.close_code(), 1000);
  });
}

FIBER_TEST(ws, fragments_and_pings_between_them_are_one_message) {
  co_await with_ws(echo, [](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    co_await p.send(op::text, "he", false);
    co_await p.send(op::ping, "between");
    co_await p.send(0, "llo", true);
    const got pong = co_await p.next();
    EXPECT_EQ(pong.opcode, op::pong);
    EXPECT_EQ(pong.data, "between");
    const got text = co_await p.next();
    EXPECT_EQ(text.opcode, op::text);
    EXPECT_EQ(text.data, "hello");
  });
}

FIBER_TEST(ws, frames_that_come_with_the_handshake_are_not_lost) {
  co_await with_ws(echo, [](int port) -> task<> {
    io::socket socket = co_await io::connect("127.0.0.1", port);
    ws_peer p(std::move(socket));
    co_await p.raw().send(upgrade_request() + frame(op::text, "early") + frame(op::binary, "bird"));
    EXPECT_EQ((co_await p.raw().next()).status, 101);
    EXPECT_EQ((co_await p.next()).data, "early");
    EXPECT_EQ((co_await p.next()).data, "bird");
  });
}

FIBER_TEST(ws, a_close_of_the_peer_ends_reading_and_is_answered) {
  struct seen {
    int code = 0;
    std::string reason;
    bool stays = false;
    std::error_code late;
  };
  std::vector<seen> all;
  auto fn = [&](ws::connection& c) -> task<> {
    co_await read_to_end(c);
    seen s;
    s.code = c.close_code();
    s.reason = c.close_reason();
    const auto again = co_await c.read();
    s.stays = !again;
    s.late = co_await code_after([&] { return c.write_text("too late"); });
    all.push_back(s);
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    for (const int code : {1000, 1001, 3999, 4999}) {
      ws_peer p = co_await ws_peer::dial(port);
      co_await p.send(op::text, "x");
      co_await p.close(code, "\xe2\x82\xac");
      EXPECT_EQ(co_await p.closed(), code);
      EXPECT_TRUE(co_await p.at_end());
    }
    ws_peer p = co_await ws_peer::dial(port);
    co_await p.send(op::close, "");
    EXPECT_EQ(co_await p.closed(), 0) << "a close without a code is answered without one";
    EXPECT_TRUE(co_await p.at_end());
  });
  EXPECT_EQ(all.size(), 5U);
  if (all.size() != 5) co_return;
  EXPECT_EQ(all[0].code, 1000);
  EXPECT_EQ(all[2].code, 3999);
  EXPECT_EQ(all[4].code, 1005);
  for (const seen& s : all) {
    EXPECT_TRUE(s.stays);
    EXPECT_EQ(s.late, errc::closed);
  }
  EXPECT_EQ(all[0].reason, "\xe2\x82\xac");
}

FIBER_TEST(ws, a_connection_that_breaks_ends_with_1006) {
  std::vector<int> codes;
  auto fn = [&](ws::connection& c) -> task<> {
    co_await read_to_end(c);
    codes.push_back(c.close_code());
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    {
      ws_peer p = co_await ws_peer::dial(port);
      co_await p.send(op::text, "half", false);
    }
    co_await weir::sleep(20ms);
  });
  EXPECT_EQ(codes, std::vector<int>{1006});
}

FIBER_TEST(ws, close_says_why_and_waits_for_the_answer) {
  auto fn = [](ws::connection& c) -> task<> {
    co_await c.close(4001, "enough");
    EXPECT_EQ(c.close_code(), 4001);
    EXPECT_EQ(co_await code_after([&] { return c.write_text("late"); }), errc::closed);
    co_await c.close();  // again: nothing
  };
  co_await with_ws(fn, [](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    const got g = co_await p.next();
    EXPECT_EQ(g.opcode, op::close);
    EXPECT_EQ(g.code(), 4001);
    EXPECT_EQ(g.data.substr(2), "enough");
    co_await p.send(op::text, "still on its way");
    co_await p.close(4001);
    EXPECT_TRUE(co_await p.at_end());
  });
}

FIBER_TEST(ws, what_cannot_be_sent_is_refused) {
  co_await with_ws(echo, [](int port) -> task<> {
    auto c = co_await ws::connect(url_of(port));
    EXPECT_EQ(co_await code_after([&] { return c.write_text("\xc3\x28"); }),
              errc::invalid_argument);
    const std::string long_ping(126, 'p');
    EXPECT_EQ(co_await code_after([&] { return c.ping(long_ping); }), errc::invalid_argument);
    for (const int code : {0, 999, 1004, 1005, 1006, 1015, 2999, 5000})
      EXPECT_EQ(co_await code_after([&] { return c.close(code); }), errc::invalid_argument) << code;
    EXPECT_EQ(co_await code_after([&] { return c.close(1000, std::string(124, 'r')); }),
              errc::invalid_argument);
    EXPECT_EQ(co_await code_after([&] { return c.close(1000, "\xff"); }), errc::invalid_argument);
    co_await c.write_text("goes on");
    EXPECT_EQ((co_await c.read())->data(), "goes on");
    co_await c.close();
  });
}

FIBER_TEST(ws, options_that_make_no_sense_are_refused) {
  EXPECT_EQ(
      co_await code_after([&] { return ws::connect("ws://127.0.0.1:1/", {.max_message = 0}); }),
      errc::invalid_argument);
  EXPECT_EQ(
      co_await code_after([&] { return ws::connect("ws://127.0.0.1:1/", {.ping_every = 0s}); }),
      errc::invalid_argument);
  EXPECT_EQ(
      co_await code_after([&] { return ws::connect("ws://127.0.0.1:1/", {.subprotocol = "a b"}); }),
      errc::invalid_argument);
  EXPECT_EQ(co_await code_after([&] { return ws::connect("http://127.0.0.1:1/"); }),
            errc::invalid_argument);
  EXPECT_EQ(co_await code_after([&] { return ws::connect("ws://127.0.0.1:1/#top"); }),
            errc::invalid_argument);
  http::headers own;
  own.set("upgrade", "h2c");
  EXPECT_EQ(co_await code_after([&] { return ws::connect("ws://127.0.0.1:1/", {}, own); }),
            errc::invalid_argument);
}

FIBER_TEST(ws, one_reader_and_one_writer_at_a_time) {
  auto fn = [](ws::connection& c) -> task<> {
    const std::string much(1U << 20U, 'w');
    auto reader = [&]() -> task<> { co_await c.read(); };
    auto writer = [&]() -> task<> { co_await weir::settle(c.write_binary(much)); };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.spawn(reader);
      co_await weir::yield();
      EXPECT_EQ(co_await code_after([&] { return c.read(); }), errc::busy);
      EXPECT_EQ(co_await code_after([&] { return c.read_piece(); }), errc::busy);
      s.spawn(writer);
      co_await weir::yield();
      EXPECT_EQ(co_await code_after([&] { return c.write_text("second"); }), errc::busy);
      s.cancel();
    });
  };
  co_await with_ws(fn, [](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    co_await weir::sleep(20ms);
  });
}

FIBER_TEST(ws, a_cancelled_read_has_taken_nothing) {
  auto fn = [](ws::connection& c) -> task<> {
    const auto early = co_await weir::settle(weir::with_timeout(1s, c.read()));
    EXPECT_TRUE(early.is_error());
    co_await c.write_text("go on");
    const auto m = co_await c.read();
    EXPECT_TRUE(m && m->data() == "hello");
  };
  co_await with_ws(fn, [](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    co_await p.send(op::text, "hel", false);
    EXPECT_EQ((co_await p.next()).data, "go on");
    co_await p.send(0, "lo");
    EXPECT_EQ(co_await p.closed(), 1000);
  });
}

FIBER_TEST(ws, a_cancelled_write_leaves_the_frames_whole) {
  const std::string much = pattern_of(1U << 20U, true);
  for (const bool by_client : {false, true}) {
    auto sender = [&](ws::connection& c) -> task<> {
      const auto cut = co_await weir::settle(weir::with_timeout(1s, c.write_text(much)));
      EXPECT_TRUE(cut.is_error());
      co_await c.write_text("after");
      co_await c.close();
    };
    auto reader = [&](ws::connection& c) -> task<> {
      co_await weir::sleep(5s);
      const auto first = co_await c.read();
      EXPECT_TRUE(first && first->data() == much);
      const auto second = co_await c.read();
      EXPECT_TRUE(second && second->data() == "after");
      EXPECT_FALSE(co_await c.read());
    };
    const ws::ws_options large{.max_message = 2 << 20};
    auto fn = [&](ws::connection& c) -> task<> { return by_client ? reader(c) : sender(c); };
    co_await with_ws(fn, large, [&](int port) -> task<> {
      auto c = co_await ws::connect(url_of(port), large);
      if (by_client) {
        co_await sender(c);
      } else {
        co_await reader(c);
      }
    });
  }
}

FIBER_TEST(ws, a_long_message_can_be_read_in_pieces) {
  const std::string much = pattern_of(3U << 20U, false);
  auto fn = [&](ws::connection& c) -> task<> {
    std::string all;
    for (bool more = true; more;) {
      const auto piece = co_await c.read_piece();
      EXPECT_TRUE(piece && piece->binary());
      if (!piece) co_return;
      all += piece->data();
      more = !piece->last();
      if (!more) break;
      EXPECT_EQ(co_await code_after([&] { return c.read(); }), errc::busy);
    }
    EXPECT_TRUE(all == much);
    const auto whole = co_await c.read();
    EXPECT_TRUE(whole && whole->data() == "short");
    EXPECT_FALSE(co_await c.read_piece());
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    auto c = co_await ws::connect(url_of(port));
    co_await c.write_binary(much);
    co_await c.write_text("short");
    co_await c.close();
  });
}

FIBER_TEST(ws, messages_is_a_stream_until_the_end) {
  auto fn = [](ws::connection& c) -> task<> {
    for (const char* text : {"one", "two", "three"}) co_await c.write_text(text);
  };
  co_await with_ws(fn, [](int port) -> task<> {
    auto c = co_await ws::connect(url_of(port));
    std::vector<std::string> all;
    auto stream = c.messages();
    while (auto m = co_await stream.next()) all.emplace_back(m->data());
    EXPECT_EQ(all, (std::vector<std::string>{"one", "two", "three"}));
    EXPECT_EQ(c.close_code(), 1000);
  });
}

FIBER_TEST(ws, a_client_that_is_dropped_says_1001) {
  std::vector<int> codes;
  auto fn = [&](ws::connection& c) -> task<> {
    co_await read_to_end(c);
    codes.push_back(c.close_code());
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    {
      auto c = co_await ws::connect(url_of(port));
    }
    co_await weir::sleep(20ms);
  });
  EXPECT_EQ(codes, std::vector<int>{1001});
}

FIBER_TEST(ws, a_handler_that_throws_closes_with_1011_and_is_reported) {
  int failed = 0;
  auto fn = [](ws::connection&) -> task<> {
    throw std::runtime_error("boom");
    co_return;
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    const auto watch = weir::on_event([&](const weir::event_info& e) {
      if (e.name == "connection_failed") ++failed;
    });
    ws_peer p = co_await ws_peer::dial(port);
    const got g = co_await p.next();
    EXPECT_EQ(g.code(), 1011);
    EXPECT_FALSE(g.data.find("boom") != std::string::npos);
    co_await p.close(1011);
    EXPECT_TRUE(co_await p.at_end());
    co_await weir::sleep(5ms);
  });
  EXPECT_EQ(failed, 1);
}

FIBER_TEST(ws, a_server_that_drains_closes_with_1001) {
  int code = 0;
  auto fn = [&](ws::connection& c) -> task<> {
    co_await read_to_end(c);
    code = c.close_code();
  };
  auto handler = [&](http::request& r) -> task<http::response> { return ws::accept(r, fn); };
  auto l = co_await io::listen();
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto serve = [&]() -> task<> { co_await http::serve(l, handler, {.drain = 10s}); };
    auto server = s.spawn(serve);
    ws_peer p = co_await ws_peer::dial(l.port());
    l.close();
    const got g = co_await p.next();
    EXPECT_EQ(g.opcode, op::close);
    EXPECT_EQ(g.code(), 1001);
    co_await p.close(1001);
    EXPECT_TRUE(co_await p.at_end());
    co_await server;
  });
  EXPECT_EQ(code, 1001);
}

// ------------------------------------------------------------------ liveness, in virtual time

FIBER_TEST(ws, a_peer_that_is_silent_for_two_periods_is_gone) {
  std::error_code how;
  weir::duration after{};
  int code = 0;
  auto fn = [&](ws::connection& c) -> task<> {
    const weir::time_point start = weir::now();
    how = co_await code_after([&] { return c.read(); });
    after = weir::now() - start;
    EXPECT_FALSE(co_await c.read());
    EXPECT_EQ(co_await code_after([&] { return c.write_text("late"); }), errc::closed);
    code = c.close_code();
  };
  co_await with_ws(fn, ws::ws_options{.ping_every = 20s}, [&](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    const got g = co_await p.next();
    EXPECT_EQ(g.opcode, op::ping);
    while ((co_await p.next()).opcode >= 0) {
    }
  });
  EXPECT_EQ(how, errc::closed);
  EXPECT_EQ(after, 40s);
  EXPECT_EQ(code, 1006);
}

FIBER_TEST(ws, pings_keep_a_quiet_connection_alive) {
  co_await with_ws(echo, ws::ws_options{.ping_every = 20s}, [&](int port) -> task<> {
    auto c = co_await ws::connect(url_of(port), {.ping_every = 30s});
    const auto quiet = co_await weir::settle(weir::with_timeout(1h, c.read()));
    EXPECT_TRUE(quiet.is_error());
    co_await c.write_text("still here");
    EXPECT_EQ((co_await c.read())->data(), "still here");
    co_await c.close();
  });
}

FIBER_TEST(ws, pings_are_answered_while_no_fiber_reads) {
  auto fn = [](ws::connection& c) -> task<> {
    co_await weir::sleep(1h);
    co_await c.close();
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    co_await p.send(op::ping, "there?");
    for (;;) {
      const got g = co_await p.next();
      if (g.opcode == op::close) break;
      if (g.opcode == op::ping) co_await p.send(op::pong, g.data);
      EXPECT_TRUE(g.opcode != op::pong || g.data == "there?");
    }
    co_await p.close(1000);
  });
}

FIBER_TEST(ws, a_message_that_is_not_read_does_not_count_as_silence) {
  auto fn = [](ws::connection& c) -> task<> {
    co_await weir::sleep(1h);
    EXPECT_EQ((co_await c.read())->data(), "waits for its reader");
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    co_await p.send(op::text, "waits for its reader");
    EXPECT_EQ(co_await p.closed(), 1000);
  });
}

FIBER_TEST(ws, close_waits_five_seconds_for_a_peer_that_does_not_answer) {
  auto fn = [](ws::connection& c) -> task<> {
    const weir::time_point start = weir::now();
    co_await c.close();
    EXPECT_EQ(weir::now() - start, 5s);
    EXPECT_EQ(c.close_code(), 1006);
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    EXPECT_EQ(co_await p.closed(), 1000);
    EXPECT_TRUE(co_await p.at_end());
  });
}

FIBER_TEST(ws, a_close_ends_while_another_fiber_reads) {
  std::vector<std::string> read;
  auto fn = [&](ws::connection& c) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto reader = [&]() -> task<> {
        while (auto m = co_await c.read()) read.emplace_back(m->data());
      };
      s.spawn(reader);
      co_await weir::sleep(1s);
      co_await c.close(4000);
      EXPECT_EQ(c.close_code(), 4000);
    });
  };
  co_await with_ws(fn, [&](int port) -> task<> {
    ws_peer p = co_await ws_peer::dial(port);
    EXPECT_EQ(co_await p.closed(), 4000);
    co_await p.send(op::text, "on its way");
    co_await p.close(4000);
  });
  EXPECT_EQ(read, std::vector<std::string>{"on its way"});
}
