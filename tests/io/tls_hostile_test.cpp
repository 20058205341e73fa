// SPDX-License-Identifier: MIT
// Peers that break the rules of TLS, stop in the middle, or do not speak it at all.
#include <set>

#include "network_support.hpp"
#include "tls_support.hpp"

using namespace weir_test;

namespace {

/// The texts of `connection_failed` events.
struct failure_log {
  text_log texts;
  void operator()(const weir::event_info& e) {
    if (e.name == "connection_failed") texts.push_back(what_of(e.error));
  }
  task<std::string> next() {
    co_await wait_until([this] { return !texts.empty(); });
    std::string first = texts.front();
    texts.erase(texts.begin());
    co_return first;
  }
};

/// Whether a client is served.
task<bool> is_served(int port, const localhost_authority& ca) {
  auto c = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
  co_await c.write_all("ping");
  co_return co_await read_n(c, 4) == "ping";
}

}  // namespace

TEST(tls_hostile, a_client_that_does_not_speak_tls_is_refused_and_others_are_served) {
  const localhost_authority ca;
  struct row {
    std::string bytes;
    const char* why;
  };
  const std::string huge_record("\x16\x03\x01\xff\xff", 5);
  const row rows[] = {
      {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "does not speak TLS"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "does not speak TLS"},
      {pattern(5000), "does not speak TLS"},
      {std::string(64, '\0'), "does not speak TLS"},
      {huge_record + std::string(1000, 'x'), ""},
      {std::string("\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", 10), ""},
      {std::string("\x17\x03\x03\x00\x01x", 6), ""},
  };
  while_serving_tls(ca.server("srv"), tls_echo, [&](int port) -> task<> {
    failure_log failed;
    auto sub = weir::on_event([&](const weir::event_info& e) { failed(e); });
    for (const row& r : rows) {
      plain_socket foreign = plain_socket::dial(port);
      EXPECT_TRUE(foreign.send(r.bytes));
      const std::string why = co_await failed.next();
      EXPECT_TRUE(contains(why, r.why)) << why;
      EXPECT_TRUE(contains(why, "TLS handshake: socket 127.0.0.1:")) << why;
      EXPECT_TRUE(co_await is_served(port, ca));
    }
  });
}

TEST(tls_hostile, a_server_that_does_not_speak_tls_is_refused) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    for (const std::string bytes :
         {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", ""}) {
      auto answer = [&]() -> task<> {
        auto c = co_await l.accept();
        (void)co_await read_next(c, 4096);
        if (!bytes.empty()) co_await c.write_all(bytes);
        c.shutdown_write();
        (void)co_await attempt([&] { return read_all(c); });
      };
      std::exception_ptr error;
      auto connect = [&]() -> task<> {
        error = co_await attempt([&] { return io::tls_connect("localhost", l.port()); });
      };
      co_await weir::all(answer, connect);
      EXPECT_EQ(code_of(error), errc::tls_failed);
      const char* const why = bytes.empty() ? "closed the connection" : "does not speak TLS";
      EXPECT_TRUE(contains(what_of(error), why)) << what_of(error);
      EXPECT_TRUE(contains(what_of(error), "localhost")) << what_of(error);
    }
  };
  weir::run(program);
}

TEST(tls_hostile, a_slow_handshake_holds_up_nobody_and_ends_with_its_limit) {
  const localhost_authority ca;
  auto body = [&](int port) -> task<> {
    failure_log failed;
    auto sub = weir::on_event([&](const weir::event_info& e) { failed(e); });
    std::vector<plain_socket> silent;
    for (int i = 0; i < 20; ++i) silent.push_back(plain_socket::dial(port));
    // The beginning of a ClientHello, and then nothing.
    for (plain_socket& c : silent) c.send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
    EXPECT_TRUE(co_await is_served(port, ca));
    for (int i = 0; i < 20; ++i) {
      const std::string why = co_await failed.next();
      EXPECT_TRUE(contains(why, "took longer than 100 ms")) << why;
    }
  };
  while_serving_tls(ca.server("srv"), tls_echo, body, {.drain = 0ms, .handshake_timeout = 100ms});
}

TEST(tls_hostile, a_stream_that_is_cut_anywhere_is_an_error_and_never_an_end) {
  const localhost_authority ca;
  const std::string text = pattern(3000);
  auto tell = [&](io::socket& c) -> task<> {
    (void)co_await read_next(c, 1);
    for (std::size_t i = 0; i < 30; ++i) co_await c.write_all(text.substr(i * 100, 100));
  };
  std::set<std::string> seen;
  while_serving_tls(ca.server("srv"), tell, [&](int port) -> task<> {
    for (std::size_t limit = 0; limit < 7000; limit += 61) {
      relay r(port, limit);
      co_await r.listen();
      std::string got;
      std::exception_ptr error;
      auto pass = [&]() -> task<> { co_await r.run(); };
      auto ask = [&]() -> task<> {
        error = co_await attempt([&]() -> task<> {
          auto c = co_await io::tls_connect("localhost", r.port(), {.ca_file = ca.root});
          co_await c.write_all("x");
          for (;;) {
            const std::string piece = co_await read_next(c, 4096);
            if (piece.empty()) co_return;
            got += piece;
          }
        });
      };
      co_await weir::all(pass, ask);
      EXPECT_EQ(got, text.substr(0, got.size()));
      if (error == nullptr) {
        EXPECT_EQ(got, text) << limit;
        seen.insert("whole");
      } else {
        EXPECT_TRUE(code_of(error) == errc::tls_failed || code_of(error) == errc::tls_truncated)
            << what_of(error);
        seen.insert(code_of(error).message());
      }
    }
  });
  EXPECT_EQ(seen.size(), 3U);
}

TEST(tls_hostile, a_record_that_was_changed_on_its_way_is_refused_for_good) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    auto l = co_await io::listen({.tls = &context});
    openssl_peer foreign(l.port(), TLS1_3_VERSION);
    io::socket c = co_await l.accept();
    co_await weir::all([&] { return foreign.shake_hands(); },
                       [&]() -> task<> { co_await c.handshake(); });
    foreign.socket().send(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
    const std::exception_ptr first = co_await attempt([&] { return read_next(c, 10); });
    EXPECT_EQ(code_of(first), errc::tls_failed);
    EXPECT_EQ(ERR_peek_error(), 0U);
    EXPECT_EQ(what_of(co_await attempt([&] { return read_next(c, 10); })), what_of(first));
    EXPECT_EQ(co_await code_after([&] { return c.write_all("x"); }), errc::tls_failed);
  };
  weir::run(program);
}

TEST(tls_hostile, an_endless_record_is_refused_with_bounded_memory) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    auto l = co_await io::listen({.tls = &context});
    openssl_peer foreign(l.port(), TLS1_3_VERSION);
    io::socket c = co_await l.accept();
    co_await weir::all([&] { return foreign.shake_hands(); },
                       [&]() -> task<> { co_await c.handshake(); });
    foreign.socket().send(std::string("\x17\x03\x03\xff\xff", 5) + std::string(20'000, 'x'));
    EXPECT_EQ(co_await code_after([&] { return read_next(c, 10); }), errc::tls_failed);
  };
  weir::run(program);
}

TEST(tls_hostile, a_renegotiation_is_refused) {
  const localhost_authority ca;
  text_log got;
  auto read = [&](io::socket& c) -> task<> {
    for (;;) {
      const std::string text = co_await read_next(c, 100);
      if (text.empty()) co_return;
      got.push_back(text);
    }
  };
  while_serving_tls(ca.server("srv"), read, [&](int port) -> task<> {
    openssl_peer foreign(port, TLS1_2_VERSION);
    co_await foreign.shake_hands();
    foreign.write("before");
    co_await wait_until([&] { return got.size() == 1; });
    SSL_renegotiate(foreign.ssl());
    SSL_do_handshake(foreign.ssl());
    // The answer is the alert no_renegotiation, which OpenSSL takes as the end.
    co_await foreign.until([&] { return foreign.failed(); });
    EXPECT_TRUE(contains(foreign.failure(), "no renegotiation")) << foreign.failure();
  });
  EXPECT_EQ(got, text_log{"before"});
}

TEST(tls_hostile, new_keys_are_answered_while_bytes_are_sent) {
  const localhost_authority ca;
  while_serving_tls(ca.server("srv"), tls_echo, [&](int port) -> task<> {
    openssl_peer foreign(port, TLS1_3_VERSION);
    co_await foreign.shake_hands();
    std::string sent;
    for (int i = 0; i < 20; ++i) {
      SSL_key_update(foreign.ssl(), SSL_KEY_UPDATE_REQUESTED);
      sent += pattern(1000, static_cast<unsigned>(i));
      foreign.write(pattern(1000, static_cast<unsigned>(i)));
      co_await foreign.until([&] { return foreign.received().size() == sent.size(); });
    }
    EXPECT_EQ(foreign.received(), sent);
  });
}

TEST(tls_hostile, close_notify_is_sent_once_and_ends_the_stream_of_openssl) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    auto l = co_await io::listen({.tls = &context});
    openssl_peer foreign(l.port(), TLS1_2_VERSION);
    io::socket c = co_await l.accept();
    co_await weir::all([&] { return foreign.shake_hands(); },
                       [&]() -> task<> { co_await c.handshake(); });
    (void)foreign.socket().arrived();
    c.shutdown_write();
    c.shutdown_write();
    // In 1.2 an alert is a record of its own: 5 bytes of header, 26 of AES-GCM.
    const std::string alert = foreign.socket().arrived();
    EXPECT_EQ(alert.size(), 31U);
    EXPECT_EQ(alert[0], '\x15');
    c.close();
    EXPECT_EQ(foreign.socket().arrived(), "(end)");
  };
  weir::run(program);
}

TEST(tls_hostile, a_client_that_writes_and_leaves_is_read_to_its_end) {
  const localhost_authority ca;
  text_log got;
  auto read = [&](io::socket& c) -> task<> { got.push_back(co_await read_all(c)); };
  while_serving_tls(ca.server("srv"), read, [&](int port) -> task<> {
    for (std::size_t i = 1; i <= 20; ++i) {
      // It has not read the tickets that the server sends after the handshake.
      auto c = co_await io::tls_connect("localhost", port, {.ca_file = ca.root});
      co_await c.write_all(pattern(100'000));
      c.close();
      co_await wait_until([&] { return got.size() == i; });
      EXPECT_TRUE(got.back() == pattern(100'000));
    }
  });
}

TEST(tls_hostile, a_reset_is_the_error_of_the_system) {
  const localhost_authority ca;
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv");
    auto l = co_await io::listen({.tls = &context});
    openssl_peer foreign(l.port(), TLS1_3_VERSION);
    io::socket c = co_await l.accept();
    co_await weir::all([&] { return foreign.shake_hands(); },
                       [&]() -> task<> { co_await c.handshake(); });
    foreign.socket().reset();
    EXPECT_EQ(co_await code_after([&] { return read_next(c, 10); }), std::errc::connection_reset);
  };
  weir::run(program);
}
