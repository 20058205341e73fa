// SPDX-License-Identifier: MIT
// Clients that are not weir's: curl, wrk and Python's http.client, where they are installed.
#include <weir/http/serve.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "io/http_peer.hpp"

namespace {

namespace http = weir::http;
using http_test::on_loopback;
using weir::task;

/// What a shell command prints.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "no shell";
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  ::pclose(pipe);
  return out;
}

bool is_installed(const std::string& program) {
  return !output_of("command -v " + program).empty();
}

weir::stream<std::string> numbers_for_foreigners() {
  for (int i = 0; i < 5; ++i) {
    co_await weir::yield();
    co_yield std::to_string(i);
  }
}

task<http::response> foreign_handler(http::request& r) {
  if (r.path() == "/stream") co_return http::response::stream(numbers_for_foreigners());
  std::string body = co_await r.body();
  co_return http::response(200, std::string(r.method()) + " " + std::to_string(body.size()));
}

TEST(http_foreign, curl_is_answered) {
  if (!is_installed("curl")) GTEST_SKIP() << "curl is not installed";
  on_loopback(foreign_handler, {}, [](int port) -> task<> {
    const std::string url = " http://127.0.0.1:" + std::to_string(port);
    const std::string curl = "curl -s --noproxy '*' --max-time 60 ";
    std::string out;
    co_await weir::blocking([&] {
      out += output_of(curl + url + "/a" + url + "/stream") + "\n";
      out += output_of(curl + "-d abc" + url + "/b") + "\n";
      out += output_of("head -c 500000 /dev/zero | " + curl + "-T - -X POST" + url + "/c") + "\n";
      out += output_of("head -c 500000 /dev/zero | " + curl +
                       "-H 'Expect: 100-continue' --data-binary @-" + url + "/d") +
             "\n";
      out += output_of(curl + "--http1.0" + url + "/stream") + "\n";
      out += output_of(curl + "-o /dev/null -w '%{http_code}' -I" + url + "/e") + "\n";
    });
    EXPECT_EQ(out, "GET 001234\nPOST 3\nPOST 500000\nPOST 500000\n01234\n200\n");
  });
}

TEST(http_foreign, python_is_answered) {
  if (!is_installed("python3")) GTEST_SKIP() << "python3 is not installed";
  on_loopback(foreign_handler, {}, [](int port) -> task<> {
    const std::string program =
        "python3 -c \"import http.client\n"
        "c = http.client.HTTPConnection('127.0.0.1', " +
        std::to_string(port) +
        ")\n"
        "for i in range(3):\n"
        "  c.request('PUT', '/', body=b'x' * (i * 1000))\n"
        "  print(c.getresponse().read().decode())\n"
        "c.request('GET', '/stream')\n"
        "print(c.getresponse().read().decode())\n\"";
    std::string out;
    co_await weir::blocking([&] { out = output_of(program); });
    EXPECT_EQ(out, "PUT 0\nPUT 1000\nPUT 2000\n01234\n");
  });
}

TEST(http_foreign, wrk_has_no_errors) {
  if (!is_installed("wrk")) GTEST_SKIP() << "wrk is not installed";
  std::int64_t answered = 0;
  auto count = [&](http::request& r) -> task<http::response> {
    std::string body = co_await r.body();
    ++answered;
    co_return http::response(200, std::move(body));
  };
  on_loopback(count, {}, [](int port) -> task<> {
    const std::string url = " http://127.0.0.1:" + std::to_string(port) + "/";
    std::string out;
    co_await weir::blocking([&] { out = output_of("wrk -t1 -c20 -d1s" + url); });
    EXPECT_TRUE(http_test::has(out, "Requests/sec")) << out;
    EXPECT_FALSE(http_test::has(out, "Non-2xx")) << out;
    EXPECT_FALSE(http_test::has(out, "Socket errors")) << out;
  });
  EXPECT_GT(answered, 0);
}

}  // namespace
