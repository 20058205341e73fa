// SPDX-License-Identifier: MIT
// http::client: pulls that are cancelled at any moment, and requests in places where they end.
#include "http_client_support.hpp"

using namespace weir_test;

namespace {

task<> some_turns(int n) {
  for (int i = 0; i < n; ++i) co_await weir::yield();
}

/// A body that is never complete.
weir::stream<std::string> open_body() {
  weir::event never;
  for (int i = 0; i < 20; ++i) {
    co_await weir::yield();
    co_yield std::string("up");
  }
  co_await never.wait();
}

/// Answers at once, in many pieces, without waiting for the end of the request.
task<> answer_in_pieces(served_connection& c, int count) {
  (void)co_await c.socket().read_until("\r\n\r\n", 10'000);
  co_await c.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < count; ++i) {
    co_await some_turns(i % 7);
    co_await c.send("4\r\n" + std::to_string(1000 + i) + "\r\n");
  }
  co_await c.send("0\r\n\r\n");
  (void)co_await c.request();
}

}  // namespace

TEST(http_client_hostile, pulls_that_are_cancelled_while_a_body_is_sent_lose_nothing) {
  constexpr int count = 400;
  std::string expected;
  for (int i = 0; i < count; ++i) expected += std::to_string(1000 + i);
  for (const bool sends : {true, false}) {
    SCOPED_TRACE(sends);
    std::string got;
    auto script = [](served_connection& c) { return answer_in_pieces(c, count); };
    with_scripted_server(script, [&](scripted_server& s) -> task<> {
      http::client c;
      http::request_body body;
      if (sends) body = http::request_body(open_body());
      http::incoming in = co_await c.open("POST", s.url(), std::move(body));
      bool more = true;
      for (int i = 0; more; ++i) {
        auto pull = [&]() -> task<> {
          auto piece = co_await in.next();
          more = piece.has_value();
          if (piece) got += *piece;
        };
        auto end = [&] { return some_turns(i % 40); };
        (void)co_await weir::race(pull, end);
      }
    });
    EXPECT_EQ(got, expected);
  }
}
