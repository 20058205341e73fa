// SPDX-License-Identifier: MIT
// Redirects of http::client.
#include "io/http_client_support.hpp"

using namespace weir_test;

namespace {

/// "/303/next" answers with that status and location; anything else with "ok".
task<> redirects_by_path(served_connection& c) {
  while (const auto r = co_await c.request()) {
    const std::string target = r.target();
    if (target.size() < 5 || target[4] != '/') {
      co_await c.send(answer_of("ok"));
    } else {
      co_await c.send(answer_of("moved", "location: " + target.substr(4) + "\r\n",
                                target.substr(1, 3) + " Moved"));
    }
  }
}

weir::stream<std::string> two_pieces() {
  co_yield std::string("a");
  co_yield std::string("b");
}

}  // namespace

TEST(http_client_redirect, is_followed_on_the_same_host_over_the_same_connection) {
  with_scripted_server(redirects_by_path, [](scripted_server& s) -> task<> {
    http::client c;
    const auto r = co_await c.get(s.url("/302/301/307/end?x"));
    EXPECT_EQ(r.status(), 200);
    EXPECT_EQ(s.requests.size(), 4U);
    EXPECT_EQ(s.requests.back().target(), "/end?x");
    EXPECT_EQ(s.accepted, 1);
  });
}

TEST(http_client_redirect, changes_the_method_as_the_status_says) {
  struct sample {
    const char* method;
    const char* status;
    const char* then;  // method and body
  };
  for (const sample& sample :
       {sample{"POST", "301", "GET"}, sample{"POST", "302", "GET"}, sample{"POST", "303", "GET"},
        sample{"POST", "307", "POSTbody"}, sample{"POST", "308", "POSTbody"},
        sample{"PUT", "301", "PUTbody"}, sample{"PUT", "302", "PUTbody"},
        sample{"PUT", "303", "GET"}, sample{"PUT", "307", "PUTbody"},
        sample{"DELETE", "302", "DELETEbody"}}) {
    SCOPED_TRACE(std::string(sample.method) + sample.status);
    with_scripted_server(redirects_by_path, [&](scripted_server& s) -> task<> {
      http::client c;
      http::headers h;
      h.set("content-type", "text/plain").set("x-kept", "yes");
      const auto r = co_await c.request(
          sample.method, s.url("/" + std::string(sample.status) + "/end"), "body", h);
      EXPECT_EQ(r.body(), "ok");
      const received_request& last = s.requests.back();
      EXPECT_EQ(last.method() + last.body, sample.then);
      EXPECT_EQ(last.field("x-kept"), "yes");
      const bool has_body = std::string_view(sample.then).ends_with("body");
      EXPECT_EQ(last.field("content-type"), has_body ? "text/plain" : "(none)");
      EXPECT_EQ(last.field("content-length"), has_body ? "4" : "(none)");
    });
  }
}

TEST(http_client_redirect, of_a_head_stays_a_head) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        while (const auto r = co_await c.request()) {
          if (r.target() == "/end") {
            co_await c.send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
          } else {
            co_await c.send("HTTP/1.1 303 See\r\nlocation: end\r\ncontent-length: 9\r\n\r\n");
          }
        }
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        const auto r = co_await c.request("HEAD", s.url("/a"));
        EXPECT_EQ(r.status(), 200);
        EXPECT_EQ(r.body(), "");
        EXPECT_EQ(r.header("content-length"), "9");
        EXPECT_EQ(s.requests.back().method(), "HEAD");
      });
}

TEST(http_client_redirect, of_a_stream_is_the_response_unless_the_body_is_dropped) {
  with_scripted_server(redirects_by_path, [](scripted_server& s) -> task<> {
    http::client c;
    EXPECT_EQ((co_await c.post(s.url("/307/end"), two_pieces())).status(), 307);
    EXPECT_EQ((co_await c.post(s.url("/308/end"), two_pieces())).status(), 308);
    EXPECT_EQ((co_await c.request("PUT", s.url("/302/end"), two_pieces())).status(), 302);
    EXPECT_EQ((co_await c.post(s.url("/303/end"), two_pieces())).status(), 200);
    EXPECT_EQ(s.requests.size(), 5U);
    EXPECT_EQ(s.requests[0].body, "ab");
    EXPECT_EQ(s.requests.back().body, "");
  });
}

TEST(http_client_redirect, that_is_not_followed_is_the_response) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        while (const auto r = co_await c.request()) {
          const std::string port = std::to_string(c.socket().local().port());
          std::string location = "location: http://localhost:" + port + "/end\r\n";
          if (r.target() == "/none") location = "";
          if (r.target() == "/bad") location = "location: http://user@x/\r\n";
          if (r.target() == "/scheme") location = "location: ftp://127.0.0.1/\r\n";
          std::string answer = answer_of("text", location, "302 Found");
          if (r.target() == "/304") answer = "HTTP/1.1 304 Not\r\nlocation: /\r\n\r\n";
          co_await c.send(answer);
        }
      },
      [](scripted_server& s) -> task<> {
        http::client same;
        for (const char* path : {"/other", "/none", "/bad", "/scheme"}) {
          const auto r = co_await same.get(s.url(path));
          EXPECT_EQ(r.status(), 302) << path;
          EXPECT_EQ(r.body(), "text");
        }
        EXPECT_EQ((co_await same.get(s.url("/304"))).status(), 304);
        http::client none({.redirects = http::redirects::none});
        EXPECT_EQ((co_await none.get(s.url("/other"))).status(), 302);
        EXPECT_EQ(s.requests.size(), 6U);
      });
}

TEST(http_client_redirect, to_another_host_is_followed_under_any_without_secrets) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        while (const auto r = co_await c.request()) {
          const std::string port = std::to_string(c.socket().local().port());
          if (r.target() == "/end") {
            co_await c.send(answer_of("ok"));
          } else {
            co_await c.send(
                answer_of("", "location: http://localhost:" + port + "/end\r\n", "302 Found"));
          }
        }
      },
      [](scripted_server& s) -> task<> {
        http::client c({.redirects = http::redirects::any});
        http::headers h;
        h.set("authorization", "secret").set("cookie", "secret").set("x-kept", "yes");
        EXPECT_EQ((co_await c.get(s.url("/a"), h)).body(), "ok");
        EXPECT_EQ(s.requests[0].field("authorization"), "secret");
        EXPECT_EQ(s.requests[0].field("cookie"), "secret");
        EXPECT_EQ(s.requests[1].field("host"), "localhost:" + std::to_string(s.port));
        EXPECT_EQ(s.requests[1].field("x-kept"), "yes");
        EXPECT_FALSE(contains(s.requests[1].head, "secret"));
      });
}

TEST(http_client_redirect, on_the_same_host_keeps_the_secrets) {
  with_scripted_server(redirects_by_path, [](scripted_server& s) -> task<> {
    http::client c;
    http::headers h;
    h.set("authorization", "secret");
    co_await c.get(s.url("/302/end"), h);
    EXPECT_EQ(s.requests.back().field("authorization"), "secret");
  });
}

TEST(http_client_redirect, too_many_are_an_error) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        co_await c.answer_all(answer_of("", "location: /loop\r\n", "302 Found"));
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        const auto error = co_await failure_of([&] { return c.get(s.url()); });
        EXPECT_EQ(code_of(error), errc::too_many_redirects);
        EXPECT_FALSE(http::is_transient(error));
        EXPECT_EQ(s.requests.size(), 6U);  // the request and five redirects
        http::client strict({.max_redirects = 0});
        EXPECT_EQ(co_await code_after([&] { return strict.get(s.url()); }),
                  errc::too_many_redirects);
      });
}

TEST(http_client_redirect, with_a_body_that_is_long_or_cut_is_followed_nevertheless) {
  with_scripted_server(
      [](served_connection& c) -> task<> {
        const auto r = co_await c.request();
        if (r.target() == "/end") {
          co_await c.send(answer_of("ok"));
        } else if (r.target() == "/long") {
          co_await c.send(answer_of(std::string(300'000, 'x'), "location: /end\r\n", "302 Found"));
        } else {
          co_await c.send("HTTP/1.1 302 Found\r\nlocation: /end\r\ncontent-length: 9\r\n\r\ncut");
        }
      },
      [](scripted_server& s) -> task<> {
        http::client c;
        EXPECT_EQ((co_await c.get(s.url("/long"))).body(), "ok");
        EXPECT_EQ((co_await c.get(s.url("/cut"))).body(), "ok");
        const auto in = co_await c.open("GET", s.url("/long"));
        EXPECT_EQ(in.status(), 200);
      });
}
