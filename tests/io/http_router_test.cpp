// SPDX-License-Identifier: MIT
#include <weir/http/router.hpp>

#include <gtest/gtest.h>

#include <string>

#include "io/http_peer.hpp"

namespace {

namespace http = weir::http;
using http_test::ask;
using http_test::get;
using http_test::on_loopback;
using http_test::reply;
using weir::task;

/// Answers with a text and the param of this name.
auto route_to(std::string text, std::string name = "") {
  return [text, name](http::request& r) -> task<http::response> {
    std::string body = text;
    if (!name.empty()) body += " " + std::string(r.param(name));
    co_return http::response(200, body);
  };
}

task<reply> send_method(int port, std::string method, std::string target) {
  return ask(port, method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n", method == "HEAD");
}

TEST(http_router, prefers_literals_to_params_to_tails) {
  http::router r;
  r.get("/", route_to("root"));
  r.get("/a/{x}", route_to("param", "x"));
  r.get("/a/b", route_to("literal"));
  r.get("/a/{rest...}", route_to("tail", "rest"));
  r.get("/a/b/c", route_to("deep"));
  r.get("/a/{x}/d", route_to("back", "x"));
  r.get("/slash/", route_to("slash"));
  on_loopback(r, {}, [](int port) -> task<> {
    const std::pair<const char*, const char*> cases[] = {
        {"/", "root"},
        {"/a/b", "literal"},
        {"/a/z", "param z"},
        {"/a/b/c", "deep"},
        {"/a/b/d", "back b"},
        {"/a/b/e", "tail b/e"},
        {"/a/", "tail "},
        {"/slash/", "slash"},
        {"/a/x%2Fy", "param x/y"},
        {"/a/%62", "literal"},
        {"/a/1%2525", "param 1%25"},
        {"/a/p%2Fq/r", "tail p/q/r"},
        {"/a/./z/../b", "literal"},
    };
    for (const auto& [target, body] : cases)
      EXPECT_EQ((co_await get(port, target)).body, body) << target;
    for (const char* target : {"/nope", "/a", "/slash", "//", "/A/b"})
      EXPECT_EQ((co_await get(port, target)).status, 404) << target;
  });
}

TEST(http_router, answers_by_method_and_says_which_are_allowed) {
  http::router r;
  r.get("/o/{id}", route_to("get", "id"));
  r.del("/o/{key}", route_to("delete", "key"));
  r.get("/o/new", route_to("new"));
  r.post("/p", route_to("post")).put("/p", route_to("put")).patch("/p", route_to("patch"));
  on_loopback(r, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await send_method(port, "DELETE", "/o/7")).body, "delete 7");
    EXPECT_EQ((co_await send_method(port, "DELETE", "/o/new")).body, "delete new")
        << "a literal without the method does not hide the param";
    EXPECT_EQ((co_await send_method(port, "POST", "/p")).body, "post");
    EXPECT_EQ((co_await send_method(port, "PUT", "/p")).body, "put");
    EXPECT_EQ((co_await send_method(port, "PATCH", "/p")).body, "patch");
    const reply head = co_await send_method(port, "HEAD", "/o/7");
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("content-length"), "5");
    const reply refused = co_await send_method(port, "PUT", "/o/7");
    EXPECT_EQ(refused.status, 405);
    EXPECT_EQ(refused.header("allow"), "GET, HEAD, DELETE, OPTIONS");
    EXPECT_EQ((co_await send_method(port, "BREW", "/p")).status, 405);
    const reply options = co_await send_method(port, "OPTIONS", "/p");
    EXPECT_EQ(options.status, 204);
    EXPECT_EQ(options.header("allow"), "POST, PUT, PATCH, OPTIONS");
    EXPECT_EQ((co_await send_method(port, "OPTIONS", "/none")).status, 404);
    const reply star = co_await send_method(port, "OPTIONS", "*");
    EXPECT_EQ(star.status, 204);
    EXPECT_EQ(star.header("allow"), "GET, HEAD, DELETE, POST, PUT, PATCH, OPTIONS");
  });
}

TEST(http_router, refuses_patterns_that_cannot_be_meant) {
  http::router r;
  r.get("/a/{x}", route_to("a"));
  for (const char* bad : {"/a/{y}", "", "a", "/{x}/{x}", "/{r...}/b", "/{}", "/{...}", "/a{x}",
                          "/{x", "/x}", "/{a{b}}"}) {
    try {
      r.get(bad, route_to("b"));
      ADD_FAILURE() << "accepted " << bad;
    } catch (const weir::error& e) {
      EXPECT_EQ(e.code(), weir::errc::invalid_argument) << bad;
    }
  }
  r.post("/a/{y}", route_to("another method"));
}

TEST(http_router, knows_the_params_of_its_pattern_only) {
  http::router r;
  r.get("/a/{x}", route_to("a", "unknown"));
  r.get("/b/{x}", [](http::request& q) -> task<http::response> {
    bool refused = false;
    try {
      (void)q.param("y");
    } catch (const weir::error& e) {
      refused = e.code() == weir::errc::invalid_argument;
    }
    co_return http::response(200, refused ? "refused" : "?");
  });
  on_loopback(r, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await get(port, "/a/1")).status, 500);
    EXPECT_EQ((co_await get(port, "/b/1")).body, "refused");
  });
}

TEST(http_router, copies_have_the_routes_of_that_moment) {
  http::router r;
  r.get("/a", route_to("a"));
  const http::router copy = r;
  r.get("/b", route_to("b"));
  on_loopback(copy, {}, [](int port) -> task<> {
    EXPECT_EQ((co_await get(port, "/a")).body, "a");
    EXPECT_EQ((co_await get(port, "/b")).status, 404);
  });
}

}  // namespace
