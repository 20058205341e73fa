// SPDX-License-Identifier: MIT
#include "io/http_text.hpp"

#include <weir/http/headers.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <weir/error.hpp>

#include "io/http_write.hpp"

namespace {

std::string normal_path(std::string_view raw) {
  std::string path;
  std::vector<std::string_view> segments;
  const auto fault = weir::detail::normalize_path(raw, path, segments);
  return fault ? "fault " + std::to_string(fault.status) : path;
}

TEST(http_text, a_path_is_decoded_once_and_has_no_dot_segments) {
  EXPECT_EQ(normal_path("/"), "/");
  EXPECT_EQ(normal_path("/p/./x/../y"), "/p/y");
  EXPECT_EQ(normal_path("/a/.."), "/");
  EXPECT_EQ(normal_path("/a/b/."), "/a/b/");
  EXPECT_EQ(normal_path("/a/b/../"), "/a/");
  EXPECT_EQ(normal_path("/a//b"), "/a//b");
  EXPECT_EQ(normal_path("/a/..."), "/a/...");
  EXPECT_EQ(normal_path("/%61%20b"), "/a b");
  EXPECT_EQ(normal_path("/100%2525"), "/100%25");
  EXPECT_EQ(normal_path("/a%2Fb%2fc"), "/a%2Fb%2fc");
  EXPECT_EQ(normal_path("/a/%2e%2E/b"), "/b");
  EXPECT_EQ(normal_path("/a/.%2e/b"), "/b");
  EXPECT_EQ(normal_path("/a%2F..%2Fb"), "/a%2F..%2Fb");
  EXPECT_EQ(normal_path("/.."), "fault 400");
  EXPECT_EQ(normal_path("/a/../.."), "fault 400");
  EXPECT_EQ(normal_path("/%2e%2e/a"), "fault 400");
  EXPECT_EQ(normal_path("/%"), "fault 400");
  EXPECT_EQ(normal_path("/%4"), "fault 400");
  EXPECT_EQ(normal_path("/%4g"), "fault 400");
  EXPECT_EQ(normal_path("/%00"), "fault 400");
}

TEST(http_text, a_query_is_decoded_with_plus_as_space) {
  using weir::detail::query_value;
  EXPECT_EQ(query_value("a=1%262&b=x+y", "a"), "1&2");
  EXPECT_EQ(query_value("a=1%262&b=x+y", "b"), "x y");
  EXPECT_EQ(query_value("a", "a"), "");
  EXPECT_EQ(query_value("a=", "a"), "");
  EXPECT_EQ(query_value("a", "b"), std::nullopt);
  EXPECT_EQ(query_value("", ""), std::nullopt);
  EXPECT_EQ(query_value("&&a=1", "a"), "1");
  EXPECT_EQ(query_value("a=1&a=2", "a"), "1");
  EXPECT_EQ(query_value("a=b=c", "a"), "b=c");
  EXPECT_EQ(query_value("%61+b=1", "a b"), "1");
}

TEST(http_text, headers_ignore_the_case_of_names_and_refuse_what_breaks_their_line) {
  weir::http::headers h;
  h.set("Content-Type", "text/html").set("X", " 1 ").add("x", "2");
  EXPECT_EQ(h.get("content-TYPE"), "text/html");
  EXPECT_EQ(h.get("x"), "1");
  EXPECT_EQ(h.size(), 3U);
  h.set("X", *h.get("x"));
  EXPECT_EQ(h.size(), 2U);
  EXPECT_EQ(h.erase("X"), 1U);
  EXPECT_FALSE(h.has("x"));
  const std::string nul("a\0b", 3);
  for (const std::string& bad :
       {std::string("a\r\nb"), std::string("a\nb"), std::string("a\rb"), nul}) {
    try {
      h.set("X", bad);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const weir::error& e) {
      EXPECT_EQ(e.code(), weir::errc::invalid_argument);
    }
  }
  for (const char* bad : {"", "a b", "a:", "a\r\n"})
    EXPECT_THROW(h.add(bad, "x"), weir::error) << bad;
  EXPECT_EQ(h.size(), 1U);
}

TEST(http_text, a_date_has_the_form_of_the_standard) {
  using namespace std::chrono;
  const auto at = sys_days(year(1994) / November / 6) + hours(8) + minutes(49) + seconds(37);
  EXPECT_EQ(weir::detail::http_date(at), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(weir::detail::http_date(at + milliseconds(999)), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(weir::detail::http_date(at + seconds(1)), "Sun, 06 Nov 1994 08:49:38 GMT");
}

TEST(http_text, an_empty_chunk_is_not_written_because_it_would_end_the_body) {
  std::string out;
  weir::detail::append_chunk(out, "");
  EXPECT_EQ(out, "");
  weir::detail::append_chunk(out, std::string(26, 'x'));
  weir::detail::append_last_chunk(out);
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n0\r\n\r\n");
}

}  // namespace
