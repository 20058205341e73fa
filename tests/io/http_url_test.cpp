// SPDX-License-Identifier: MIT
// URLs: what is accepted, what is refused, and what a location means.
#include "io/http_url.hpp"

#include "support/test_support.hpp"

using namespace test_support;
using weir::errc;
using weir::detail::http_url;
using weir::detail::parse_url;
using weir::detail::resolve_location;

TEST(http_url, is_taken_apart) {
  struct sample {
    const char* text;
    const char* host;
    int port;
    const char* target;
    const char* authority;
  };
  for (const sample& s :
       {sample{"http://a", "a", 80, "/", "a"}, sample{"http://a/", "a", 80, "/", "a"},
        sample{"HTTP://Host.Example:8080/x/y?z=%20#part", "Host.Example", 8080, "/x/y?z=%20",
               "Host.Example:8080"},
        sample{"http://a?q", "a", 80, "/?q", "a"}, sample{"http://a#f", "a", 80, "/", "a"},
        sample{"http://a:80/x", "a", 80, "/x", "a"}, sample{"https://a/x", "a", 443, "/x", "a"},
        sample{"https://a:80/x", "a", 80, "/x", "a:80"},
        sample{"http://127.0.0.1:1/", "127.0.0.1", 1, "/", "127.0.0.1:1"},
        sample{"http://[::1]/", "::1", 80, "/", "[::1]"},
        sample{"http://[2001:DB8::1]:65535/", "2001:DB8::1", 65535, "/", "[2001:DB8::1]:65535"},
        sample{"http://my_server-1:5/a//b/../c", "my_server-1", 5, "/a//b/../c",
               "my_server-1:5"}}) {
    const http_url url = parse_url(s.text);
    EXPECT_EQ(url.host, s.host) << s.text;
    EXPECT_EQ(url.port, s.port) << s.text;
    EXPECT_EQ(url.target, s.target) << s.text;
    EXPECT_EQ(url.authority(), s.authority) << s.text;
    EXPECT_EQ(url.tls, std::string_view(s.text).substr(0, 5) == "https") << s.text;
  }
}

TEST(http_url, what_could_be_read_in_two_ways_is_refused_with_the_url_in_the_error) {
  for (const char* text : {"",
                           "a",
                           "/x",
                           "//a/x",
                           "ftp://a/",
                           "http:/a/",
                           "http:a",
                           "http://",
                           "http:///x",
                           "http://user@a/",
                           "http://user:secret@a/",
                           "http://a b/",
                           "http://a/x y",
                           "http://a/\tx",
                           "http://a/x\r\ny: z",
                           "http://a/\x7f",
                           "http://a/\xc3\xa4",
                           "http://a\\b/",
                           "http://a/b\\c",
                           "http://a:/",
                           "http://a:0/",
                           "http://a:65536/",
                           "http://a:99999999999999999999/",
                           "http://a:8x/",
                           "http://a:-1/",
                           "http://a:+1/",
                           "http://[::1/",
                           "http://[::1]x/",
                           "http://[1.2.3.4]/",
                           "http://[fe80::1%25eth0]/",
                           "http://[]/",
                           "http://a%41/",
                           "http://.a/",
                           "http://a..b/",
                           "http://-a/",
                           "http://a/%",
                           "http://a/%4",
                           "http://a/%zz",
                           "http://a/?%g0",
                           " http://a/",
                           "http ://a/"}) {
    const auto error = thrown_by([&] { return parse_url(text); });
    EXPECT_EQ(code_of(error), errc::invalid_argument) << text;
    EXPECT_TRUE(contains(what_of(error), text)) << text;
  }
  EXPECT_EQ(code_of(thrown_by([] { return parse_url(std::string_view("http://a/\0", 10)); })),
            errc::invalid_argument);
  EXPECT_EQ(code_of(thrown_by([] { return parse_url("http://" + std::string(254, 'a')); })),
            errc::invalid_argument);
}

TEST(http_url, has_one_origin_however_it_is_written) {
  EXPECT_EQ(parse_url("http://A.b/x").origin(), parse_url("HTTP://a.B:80/y?z").origin());
  EXPECT_NE(parse_url("http://a/").origin(), parse_url("https://a/").origin());
  EXPECT_NE(parse_url("http://a/").origin(), parse_url("http://a:81/").origin());
  EXPECT_TRUE(parse_url("http://A/").same_host(parse_url("http://a:5/")));
  EXPECT_FALSE(parse_url("http://a/").same_host(parse_url("http://a.b/")));
  EXPECT_FALSE(parse_url("http://a/").same_origin(parse_url("http://a:5/")));
}

TEST(http_url, a_location_is_resolved_against_where_it_came_from) {
  const http_url base = parse_url("http://host:81/a/b/c?q");
  const auto resolved = [&](const char* location) {
    const auto url = resolve_location(base, location);
    return url ? url->str() : std::string("(none)");
  };
  EXPECT_EQ(resolved("http://other/x"), "http://other/x");
  EXPECT_EQ(resolved("https://other/x"), "https://other/x");
  EXPECT_EQ(resolved("//other:9/x"), "http://other:9/x");
  EXPECT_EQ(resolved("/x?y#z"), "http://host:81/x?y");
  EXPECT_EQ(resolved("d"), "http://host:81/a/b/d");
  EXPECT_EQ(resolved("./d"), "http://host:81/a/b/d");
  EXPECT_EQ(resolved("../d?e"), "http://host:81/a/d?e");
  EXPECT_EQ(resolved("../../../../d"), "http://host:81/d");
  EXPECT_EQ(resolved(".."), "http://host:81/a/");
  EXPECT_EQ(resolved("?r"), "http://host:81/a/b/c?r");
  EXPECT_EQ(resolved("#f"), "http://host:81/a/b/c?q");
  EXPECT_EQ(resolved(""), "http://host:81/a/b/c?q");
  EXPECT_EQ(resolved("d:e/f"), "(none)");
  EXPECT_EQ(resolved("/d:e"), "http://host:81/d:e");
  for (const char* bad : {"ftp://x/", "javascript:alert(1)", "http://user@host/", "/a b", "/\\x",
                          "mailto:a", "http:///", "//", "/%zz"})
    EXPECT_EQ(resolved(bad), "(none)") << bad;
}
