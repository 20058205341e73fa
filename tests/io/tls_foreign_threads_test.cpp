// SPDX-License-Identifier: MIT
// Programs that are not weir's: openssl s_client and s_server, and curl.
#include <weir/http.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <csignal>

#include "network_support.hpp"
#include "tls_support.hpp"

using namespace weir_test;
namespace http = weir::http;

namespace {

/// What a shell command prints.
std::string shell(const std::string& command) {
  std::string out;
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  ::pclose(pipe);
  return out;
}

bool has_program(const std::string& name) { return !shell("command -v " + name).empty(); }

/// `openssl s_server` with these arguments, until it is destroyed. It prints what it gets.
class openssl_server {
 public:
  openssl_server(const localhost_authority& ca, const std::string& arguments) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    out_ = ends[0];
    pid_ = ::fork();
    if (pid_ == 0) become(ca, arguments, ends[1]);
    ::close(ends[1]);
    // "ACCEPT 127.0.0.1:41234"
    std::string line;
    for (char c = 0; ::read(ends[0], &c, 1) == 1;) {
      line += c;
      if (c != '\n') continue;
      if (line.rfind("ACCEPT", 0) == 0) break;
      line.clear();
    }
    EXPECT_TRUE(contains(line, ":")) << line;
    port_ = std::atoi(line.c_str() + line.rfind(':') + 1);
  }
  openssl_server(const openssl_server&) = delete;
  openssl_server& operator=(const openssl_server&) = delete;
  ~openssl_server() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(out_);
  }
  int port() const { return port_; }

 private:
  [[noreturn]] static void become(const localhost_authority& ca, const std::string& arguments,
                                  int out) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out, 1);
    ::dup2(out, 2);
    const std::string command = "exec openssl s_server -accept 127.0.0.1:0 -cert " +
                                ca / "srv.pem" + " -key " + ca / "srv.key" + " " + arguments;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }

  int out_ = -1;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace

TEST(tls_foreign, openssl_s_client_is_served_over_1_2_and_1_3_and_refused_below) {
  if (!has_program("openssl")) GTEST_SKIP() << "openssl is not installed";
  const localhost_authority ca;
  auto answer = [](io::socket& c) -> task<> {
    const std::string line = co_await c.read_until("\n", 100);
    co_await c.write_all("got " + line);
  };
  while_serving_tls(ca.server("srv"), answer, [&](int port) -> task<> {
    const std::string base =
        "echo hello | timeout 20 openssl s_client -connect 127.0.0.1:" + std::to_string(port) +
        " -servername localhost -CAfile " + ca.root + " -verify_return_error -ign_eof ";
    std::string v13;
    std::string v12;
    std::string v11;
    co_await weir::blocking([&] {
      v13 = shell(base + "-tls1_3");
      v12 = shell(base + "-tls1_2");
      v11 = shell(base + "-tls1_1 -cipher DEFAULT@SECLEVEL=0");
    });
    EXPECT_TRUE(contains(v13, "got hello") && contains(v13, "TLSv1.3")) << v13;
    EXPECT_TRUE(contains(v12, "got hello") && contains(v12, "TLSv1.2")) << v12;
    EXPECT_TRUE(contains(v12, "Compression: NONE")) << v12;
    EXPECT_FALSE(contains(v11, "got hello")) << v11;
    EXPECT_TRUE(contains(v11, "alert protocol version")) << v11;
  });
}

TEST(tls_foreign, sessions_are_resumed_by_tickets) {
  if (!has_program("openssl")) GTEST_SKIP() << "openssl is not installed";
  const localhost_authority ca;
  auto answer = [](io::socket& c) -> task<> {
    co_await c.write_all("hello\n");
    c.shutdown_write();
    (void)co_await attempt([&] { return read_all(c); });
  };
  while_serving_tls(ca.server("srv"), answer, [&](int port) -> task<> {
    for (const std::string version : {"-tls1_3", "-tls1_2"}) {
      const std::string session = ca / ("session" + version);
      const std::string base =
          "timeout 20 openssl s_client -connect 127.0.0.1:" + std::to_string(port) + " -CAfile " +
          ca.root + " -ign_eof " + version;
      std::string first;
      std::string second;
      co_await weir::blocking([&] {
        first = shell(base + " -sess_out " + session + " </dev/null");
        second = shell(base + " -sess_in " + session + " </dev/null");
      });
      EXPECT_TRUE(contains(first, "New, ")) << first;
      EXPECT_TRUE(contains(second, "Reused, ")) << second;
    }
  });
}

TEST(tls_foreign, openssl_s_server_is_a_server_for_tls_connect) {
  if (!has_program("openssl")) GTEST_SKIP() << "openssl is not installed";
  const localhost_authority ca;
  for (const std::string version : {"-tls1_3", "-tls1_2"}) {
    const openssl_server server(ca, "-rev -alpn echo " + version);
    auto program = [&]() -> task<> {
      auto c = co_await io::tls_connect("localhost", server.port(),
                                        {.ca_file = ca.root, .alpn = "other,echo"});
      EXPECT_EQ(c.alpn(), "echo");
      co_await c.write_all("stressed\n");
      EXPECT_EQ(co_await c.read_until("\n", 100), "desserts\n");
    };
    weir::run(program);
  }
}

TEST(tls_foreign, openssl_s_server_without_a_common_version_is_refused) {
  if (!has_program("openssl")) GTEST_SKIP() << "openssl is not installed";
  const localhost_authority ca;
  const openssl_server server(ca, "-rev -tls1_1 -cipher DEFAULT@SECLEVEL=0");
  auto program = [&]() -> task<> {
    const std::exception_ptr error = co_await attempt(
        [&] { return io::tls_connect("localhost", server.port(), {.ca_file = ca.root}); });
    EXPECT_EQ(code_of(error), errc::tls_failed);
    EXPECT_TRUE(contains(what_of(error), "no version of TLS")) << what_of(error);
  };
  weir::run(program);
}

TEST(tls_foreign, curl_is_answered_by_http_serve) {
  if (!has_program("curl")) GTEST_SKIP() << "curl is not installed";
  const localhost_authority ca;
  auto handler = [](http::request& r) -> task<http::response> {
    std::string body = co_await r.body();
    co_return http::response(200,
                             std::string(r.method()) + " " + std::to_string(body.size()) + "\n");
  };
  auto program = [&]() -> task<> {
    io::tls_context context = ca.server("srv", {.alpn = "http/1.1"});
    auto l = co_await io::listen({.tls = &context});
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await http::serve(l, handler, {.drain = 0ms}); };
      s.background(serve);
      const std::string url = " https://localhost:" + std::to_string(l.port()) + "/";
      const std::string curl = "curl -sS --noproxy '*' --max-time 20 ";
      const std::string trusting = curl + "--cacert " + ca.root;
      std::string got;
      std::string refused;
      co_await weir::blocking([&] {
        got += shell(trusting + url + url);
        got += shell("head -c 500000 /dev/zero | " + trusting + " --data-binary @-" + url);
        got += shell(trusting + " --tls-max 1.2" + url);
        refused = shell(curl + url);
      });
      EXPECT_EQ(got, "GET 0\nGET 0\nPOST 500000\nGET 0\n");
      EXPECT_TRUE(contains(refused, "certificate")) << refused;
    });
  };
  weir::run(program);
}

TEST(tls_foreign, a_context_is_shared_by_loops_and_reloaded_under_load) {
  const localhost_authority ca;
  io::tls_context context = ca.server("srv");
  std::atomic<int> served{0};
  std::atomic<bool> stop{false};
  auto loop = [&] {
    while_serving_tls(context, tls_echo, [&](int port) -> task<> {
      for (int i = 0; i < 100; ++i) {
        // Not by name: TSan takes what two look-ups share inside of the system's library for a
        // race.
        auto c = co_await io::tls_connect("127.0.0.1", port, {.ca_file = ca.root});
        co_await c.write_all("ping");
        if (co_await read_n(c, 4) == "ping") ++served;
      }
    });
  };
  std::thread reloads([&] {
    while (!stop) context.reload();
  });
  std::thread first(loop);
  std::thread second(loop);
  first.join();
  second.join();
  stop = true;
  reloads.join();
  EXPECT_EQ(served, 200);
}
