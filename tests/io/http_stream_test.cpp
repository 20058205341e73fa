// SPDX-License-Identifier: MIT
#include <weir/http/response.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "io/http_peer.hpp"

namespace {

using namespace std::chrono_literals;
namespace http = weir::http;
using http_test::ask;
using http_test::get;
using http_test::get_bytes;
using http_test::has;
using http_test::on_loopback;
using http_test::peer;
using http_test::reply;
using weir::task;

struct stream_log {
  int pulled = 0;
  weir::event begun;
  weir::event ended;
};
struct stream_guard {
  stream_log& log;
  explicit stream_guard(stream_log& l) : log(l) {}
  stream_guard(const stream_guard&) = delete;
  ~stream_guard() { log.ended.set(); }
};

weir::stream<std::string> counted_pieces(stream_log& log, int n, std::size_t size) {
  const stream_guard guard(log);
  for (int i = 0; i < n; ++i) {
    ++log.pulled;
    log.begun.set();
    co_yield std::string(size, static_cast<char>('a' + i % 26));
  }
}

TEST(http_stream, is_sent_in_chunks_and_keeps_the_connection) {
  stream_log log;
  auto handler = [&](http::request& r) -> task<http::response> {
    if (r.path() != "/stream") co_return http::response(200, "next");
    co_return http::response::stream(counted_pieces(log, 5, 10)).set("X", "y");
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/stream") + get_bytes("/next"));
    const reply r = co_await p.next();
    EXPECT_TRUE(r.whole);
    EXPECT_EQ(r.body, "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee");
    EXPECT_EQ(r.header("transfer-encoding"), "chunked");
    EXPECT_EQ(r.header("content-length"), std::nullopt);
    EXPECT_EQ(r.header("content-type"), "application/octet-stream");
    EXPECT_EQ(r.header("x"), "y");
    EXPECT_EQ((co_await p.next()).body, "next");
    EXPECT_TRUE(log.ended.is_set());
  });
}

TEST(http_stream, ends_with_the_connection_in_1_0) {
  stream_log log;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(counted_pieces(log, 5, 10));
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    const reply r = co_await ask(port, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(r.body.size(), 50U);
    EXPECT_TRUE(r.whole);
    EXPECT_EQ(r.header("transfer-encoding"), std::nullopt);
    EXPECT_EQ(r.header("connection"), "close");
  });
}

TEST(http_stream, is_not_pulled_for_head) {
  stream_log log;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(counted_pieces(log, 5, 10));
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
    const reply r = co_await p.next(true);
    EXPECT_EQ(r.header("transfer-encoding"), "chunked");
    EXPECT_EQ(log.pulled, 0);
    co_await p.send(get_bytes("/"));
    EXPECT_EQ((co_await p.next()).body.size(), 50U) << "nothing was left on the connection";
  });
}

weir::stream<std::string> with_empty_pieces() {
  for (const char* text : {"", "a", "", "b", ""}) co_yield std::string(text);
}

TEST(http_stream, may_have_empty_pieces) {
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(with_empty_pieces());
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    const reply r = co_await get(port, "/");
    EXPECT_EQ(r.body, "ab");
    EXPECT_TRUE(r.whole);
  });
}

weir::stream<std::string> failing_pieces() {
  co_yield std::string("first");
  throw std::runtime_error("broken-secret");
}

TEST(http_stream, that_fails_cuts_the_connection_before_the_end_mark) {
  int reported = 0;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(failing_pieces());
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    const auto watch = weir::on_event(
        [&](const weir::event_info& e) { reported += e.name == "request_failed" ? 1 : 0; });
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    const reply r = co_await p.next();
    EXPECT_EQ(r.body, "first");
    EXPECT_FALSE(r.whole);
    EXPECT_FALSE(has(r.body, "secret"));
    EXPECT_TRUE(co_await p.at_end());
    EXPECT_EQ(reported, 1);
    const reply old = co_await ask(port, "GET / HTTP/1.0\r\n\r\n");
    EXPECT_FALSE(old.whole) << "in 1.0 a reset is the only mark";
  });
}

TEST(http_stream, is_pulled_no_faster_than_the_client_reads_and_ended_when_it_resets) {
  stream_log log;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(counted_pieces(log, 5000, 65536));
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    co_await log.begun.wait();
    // The buffers of the kernel are full when the count stays the same for a while.
    for (int before = -1; before != log.pulled;) {
      before = log.pulled;
      for (int i = 0; i < 1000; ++i) co_await weir::yield();
    }
    EXPECT_LT(log.pulled, 1000);
    EXPECT_FALSE(log.ended.is_set());
    p.close();  // with unread input: a reset
    co_await log.ended.wait();
  });
}

weir::stream<std::string> restless_pieces() {
  for (int i = 0; i < 1000; ++i) {
    // More awaits than one turn allows, but none of them waits.
    for (int k = 0; k < 3; ++k) co_await weir::checkpoint();
    co_yield std::string("x");
  }
}

TEST(http_stream, that_does_not_park_answers_a_half_closed_client) {
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(restless_pieces());
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    p.half_close();
    const reply r = co_await p.next();
    EXPECT_EQ(r.body.size(), 1000U);
    EXPECT_TRUE(r.whole);
  });
}

weir::stream<std::string> idle_pieces(stream_log& log) {
  const stream_guard guard(log);
  co_yield std::string("one");
  log.begun.set();
  co_await weir::sleep(24h);
  co_yield std::string("two");
}

TEST(http_stream, that_is_parked_is_ended_when_the_client_leaves) {
  stream_log log;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(idle_pieces(log));
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    co_await log.begun.wait();
    p.close();
    co_await log.ended.wait();
  });
}

weir::stream<std::string> upper_cased(weir::stream<std::string> body) {
  while (auto piece = co_await body.next()) {
    for (char& c : *piece) c = static_cast<char>(c - 32);
    co_yield std::move(*piece);
  }
}

TEST(http_stream, answers_while_the_body_is_still_open) {
  auto handler = [](http::request& r) -> task<http::response> {
    co_return http::response::stream(upper_cased(r.body_stream()));
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_TRUE(has(co_await p.until("\r\n\r\n"), " 200 "));
    for (int i = 0; i < 10; ++i) {
      co_await p.send("3\r\nabc\r\n");
      EXPECT_EQ(co_await p.until("\r\nABC\r\n"), "3\r\nABC\r\n");
    }
    co_await p.send("0\r\n\r\n");
    EXPECT_EQ(co_await p.until("0\r\n\r\n"), "0\r\n\r\n");
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
    EXPECT_EQ((co_await p.next()).body, "X");
  });
}

TEST(http_stream, of_a_body_comes_in_pieces_and_has_the_limit) {
  auto handler = [](http::request& r) -> task<http::response> {
    std::size_t all = 0;
    std::size_t largest = 0;
    auto body = r.body_stream();
    while (auto piece = co_await body.next()) {
      all += piece->size();
      largest = std::max(largest, piece->size());
      EXPECT_FALSE(piece->empty());
    }
    EXPECT_LE(largest, 64U * 1024);
    co_return http::response(200, std::to_string(all));
  };
  on_loopback(handler, {.max_body = 3'000'000}, [](int port) -> task<> {
    auto upload = [&](std::size_t size) -> task<std::string> {
      peer p = co_await peer::dial(port);
      auto send = [&]() -> task<> {
        co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (std::size_t left = size; left > 0; left -= 100'000)
          co_await p.send("186a0\r\n" + std::string(100'000, 'u') + "\r\n");
        co_await p.send("0\r\n\r\n");
      };
      reply r;
      auto read = [&]() -> task<> { r = co_await p.next(); };
      co_await weir::all(send, read);
      co_return std::to_string(r.status) + " " + r.body;
    };
    EXPECT_EQ(co_await upload(3'000'000), "200 3000000");
    EXPECT_TRUE((co_await upload(3'100'000)).starts_with("413 "));
  });
}

TEST(http_stream, of_a_body_is_closed_when_the_answer_has_ended) {
  std::optional<weir::stream<std::string>> kept;
  auto handler = [&](http::request& r) -> task<http::response> {
    kept.emplace(r.body_stream());
    co_return http::response(200);
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    EXPECT_EQ((co_await ask(port, http_test::post_bytes("/", "abc"))).status, 200);
    bool closed = false;
    try {
      (void)co_await kept->next();
    } catch (const weir::error& e) {
      closed = e.code() == weir::errc::closed;
    }
    EXPECT_TRUE(closed);
    kept.reset();
  });
}

/// Posts half of a body to a handler that answers while `reader` still reads it, and then the rest
/// and another request. Returns what the reader ended with.
template <class Reader>
std::optional<weir::errc> reading_beyond_the_answer(Reader reader) {
  std::optional<weir::errc> ended_with;
  weir::event reads;
  weir::event ended;
  auto program = [&](weir::scope& outer) -> task<> {
    auto handler = [&](http::request& r) -> task<http::response> {
      if (r.method() == "GET") co_return http::response(200, "next");
      auto read = [&, body = reader(r)]() mutable -> task<> {
        try {
          co_await body(reads);
        } catch (const weir::error& e) {
          ended_with = static_cast<weir::errc>(e.code().value());
        }
        ended.set();
      };
      outer.spawn(std::move(read));
      co_await reads.wait();
      co_return http::response(202, "later");
    };
    auto use = [&](int port) -> task<> {
      peer p = co_await peer::dial(port);
      co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
      const reply later = co_await p.next();
      EXPECT_EQ(later.body, "later");
      co_await ended.wait();
      co_await p.send("def" + get_bytes("/"));
      const reply next = co_await p.next();
      EXPECT_EQ(next.body, "next") << "what was left of the body was thrown away";
    };
    co_await http_test::serve_while(handler, {}, use);
  };
  weir::run([&]() -> task<> { co_await weir::with_scope(program); });
  return ended_with;
}

TEST(http_stream, of_a_body_that_is_pulled_when_the_answer_ends_is_closed) {
  const auto pull = [](http::request& r) {
    return [body = r.body_stream()](weir::event& reads) mutable -> task<> {
      EXPECT_EQ(co_await body.next(), "abc");
      reads.set();
      (void)co_await body.next();
    };
  };
  EXPECT_EQ(reading_beyond_the_answer(pull), weir::errc::closed);
  const auto take = [](http::request& r) {
    return [body = r.body()](weir::event& reads) mutable -> task<> {
      reads.set();
      (void)co_await std::move(body);
    };
  };
  EXPECT_EQ(reading_beyond_the_answer(take), weir::errc::closed);
}

TEST(http_stream, of_a_body_that_was_paused_before_the_answer_ended_is_closed) {
  std::optional<weir::stream<std::string>> kept;
  auto handler = [&](http::request& r) -> task<http::response> {
    kept.emplace(r.body_stream());
    EXPECT_EQ(co_await kept->next(), "abc");
    const auto first = co_await weir::race(kept->next(), weir::yield());
    EXPECT_EQ(first.index(), 1U);
    co_return http::response(200).set("connection", "close");
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
    EXPECT_EQ((co_await p.next()).status, 200);
    p.close();
    for (int i = 0; i < 100; ++i) co_await weir::yield();  // the connection is gone
    std::optional<weir::errc> ended_with;
    try {
      (void)co_await kept->next();
    } catch (const weir::error& e) {
      ended_with = static_cast<weir::errc>(e.code().value());
    }
    EXPECT_EQ(ended_with, weir::errc::closed);
    kept.reset();
  });
}

weir::stream<std::string> with_slow_cleanup(stream_log& log, bool& cleaned) {
  auto tidy = [&]() -> task<> {
    co_await weir::yield();
    cleaned = true;
    log.ended.set();
  };
  weir::this_context().defer(tidy);
  co_yield std::string("one");
  log.begun.set();
  co_await weir::sleep(24h);
}

TEST(http_stream, has_its_cleanup_awaited_when_the_client_leaves) {
  stream_log log;
  bool cleaned = false;
  auto handler = [&](http::request&) -> task<http::response> {
    co_return http::response::stream(with_slow_cleanup(log, cleaned));
  };
  on_loopback(handler, {}, [&](int port) -> task<> {
    peer p = co_await peer::dial(port);
    co_await p.send(get_bytes("/"));
    co_await log.begun.wait();
    p.close();
    co_await log.ended.wait();
    EXPECT_TRUE(cleaned);
  });
}

weir::stream<http::event> three_events() {
  co_yield http::event("tick", "line 1\nline 2\r\nline 3\rline 4").id("7");
  co_yield http::event("", "");
  co_yield http::event("last", "ends\n");
}

TEST(http_stream, of_events_has_the_form_of_the_standard) {
  auto handler = [](http::request&) -> task<http::response> {
    co_return http::response::events(three_events());
  };
  on_loopback(handler, {}, [](int port) -> task<> {
    const reply r = co_await get(port, "/");
    EXPECT_EQ(r.header("content-type"), "text/event-stream");
    EXPECT_EQ(r.header("cache-control"), "no-cache");
    EXPECT_EQ(r.body,
              "id: 7\nevent: tick\ndata: line 1\ndata: line 2\ndata: line 3\ndata: line 4\n\n"
              "data: \n\n"
              "event: last\ndata: ends\ndata: \n\n");
  });
}

TEST(http_stream, of_events_refuses_what_would_break_its_frame) {
  const std::string nul(1, '\0');
  const auto refused = [](auto make) {
    try {
      (void)make();
    } catch (const weir::error& e) {
      return e.code() == weir::errc::invalid_argument;
    }
    return false;
  };
  EXPECT_TRUE(refused([] { return http::event("a\nb", ""); }));
  EXPECT_TRUE(refused([] { return http::event("a\rb", ""); }));
  EXPECT_TRUE(refused([&] { return http::event(nul, ""); }));
  EXPECT_TRUE(refused([&] { return http::event("a", nul); }));
  EXPECT_TRUE(refused([] { return http::event("a", "").id("1\n2"); }));
  EXPECT_TRUE(refused([&] { return http::event("a", "").id(nul); }));
}

}  // namespace
