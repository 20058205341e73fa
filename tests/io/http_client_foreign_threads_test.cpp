// SPDX-License-Identifier: MIT
// http::client against servers that are not weir's: nginx and Python's http.server, where they are
// installed.
#include <weir/http/client.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "io_support.hpp"

using namespace weir_test;
namespace http = weir::http;

namespace {

/// The path of a program; empty if it is not installed.
std::string path_of(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(std::string(path == nullptr ? "" : path) + ":/usr/sbin");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return folder + "/" + program;
  return {};
}

/// A process that is killed with its owner. What it prints is not shown.
class foreign_process {
 public:
  explicit foreign_process(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    EXPECT_EQ(::posix_spawn(&pid_, arguments[0], &files, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&files);
  }
  foreign_process(const foreign_process&) = delete;
  foreign_process& operator=(const foreign_process&) = delete;
  ~foreign_process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
};

/// A port that was free a moment ago.
int free_port() {
  int port = 0;
  weir::run([&]() -> task<> { port = (co_await io::listen()).port(); });
  return port;
}

void write_text(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

/// A server that is told to serve the files of a folder.
struct foreign_server {
  foreign_server() : port(free_port()) {
    write_text(folder / "hello", "hello");
    write_text(folder / "long", std::string(300'000, 'x'));
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port) + path;
  }

  scratch_folder folder;
  int port;
};

std::vector<std::string> nginx(const foreign_server& s) {
  const std::string root = s.folder / "";
  std::string text =
      "daemon off; master_process off; pid ROOT/pid; error_log ROOT/errors;\n"
      "events { worker_connections 64; }\n"
      "http { access_log off; client_body_temp_path ROOT/b; proxy_temp_path ROOT/p;\n"
      "  fastcgi_temp_path ROOT/f; uwsgi_temp_path ROOT/u; scgi_temp_path ROOT/s;\n"
      "  server { listen 127.0.0.1:PORT; root ROOT; keepalive_requests 10;\n"
      "    location /moved { return 302 /hello; }\n"
      "    location /refused { return 403 no; } } }\n";
  const auto replace = [&](const std::string& what, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
      text.replace(at, what.size(), by);
  };
  replace("PORT", std::to_string(s.port));
  replace("ROOT", root.substr(0, root.size() - 1));
  write_text(s.folder / "conf", text);
  return {path_of("nginx"), "-p", root, "-c", s.folder / "conf"};
}

std::vector<std::string> python(const foreign_server& s, const std::string& version) {
  const std::string program =
      "import http.server, functools\n"
      "class H(http.server.SimpleHTTPRequestHandler):\n"
      "  protocol_version = '" +
      version +
      "'\n"
      "  def do_POST(self):\n"
      "    body = self.rfile.read(int(self.headers['content-length']))\n"
      "    self.send_response(200)\n"
      "    self.send_header('content-length', str(len(body)))\n"
      "    self.end_headers()\n"
      "    self.wfile.write(body)\n"
      "  def log_message(self, *a): pass\n"
      "http.server.ThreadingHTTPServer(('127.0.0.1', " +
      std::to_string(s.port) + "), functools.partial(H, directory='" + s.folder / "" +
      "')).serve_forever()\n";
  return {path_of("python3"), "-c", program};
}

/// Waits until it answers.
task<> wait_for(http::client& c, const foreign_server& s) {
  const std::string url = s.url("/hello");
  auto get = weir::op([&] { return c.get(url); }) |
             weir::retry({.attempts = 1000, .base = 5ms, .factor = 1, .jitter = weir::jitter::none})
                 .when(http::is_transient);
  const http::response first = co_await get();
  EXPECT_EQ(first.status(), 200);
}

/// Twice as many requests at once as connections, and more than a connection may serve.
task<> ask_at_once(http::client& c, const foreign_server& s) {
  std::vector<int> numbers(50);
  auto get = [&](int) -> task<std::size_t> {
    const http::response r = co_await c.get(s.url("/long"));
    co_return r.body().size();
  };
  const auto sizes = co_await weir::parallel_map(numbers, get, 8);
  EXPECT_EQ(sizes, std::vector<std::size_t>(50, 300'000));
}

/// Serves, is killed, and serves again at the same port, while the client keeps its connections.
template <class Command>
void ask_before_and_after_a_restart(const foreign_server& s, Command command) {
  weir::run([&]() -> task<> {
    http::client c({.max_per_host = 4});
    for (int life = 0; life < 3; ++life) {
      const foreign_process running(command(s));
      co_await wait_for(c, s);  // kept connections are dead, and at first nobody listens
      co_await ask_at_once(c, s);
    }
  });
}

}  // namespace

TEST(http_client_foreign, nginx_answers_before_and_after_it_was_restarted) {
  if (path_of("nginx").empty()) GTEST_SKIP() << "nginx is not installed";
  const foreign_server s;
  ask_before_and_after_a_restart(s, nginx);
}

TEST(http_client_foreign, nginx_redirects_refuses_and_knows_head) {
  if (path_of("nginx").empty()) GTEST_SKIP() << "nginx is not installed";
  const foreign_server s;
  const foreign_process running(nginx(s));
  weir::run([&]() -> task<> {
    http::client c;
    co_await wait_for(c, s);
    EXPECT_EQ((co_await c.get(s.url("/moved"))).body(), "hello");
    EXPECT_EQ((co_await c.get(s.url("/refused"))).status(), 403);
    EXPECT_EQ((co_await c.get(s.url("/nothing"))).status(), 404);
    const http::response head = co_await c.request("HEAD", s.url("/long"));
    EXPECT_EQ(head.header("content-length"), "300000");
    EXPECT_EQ(head.body(), "");
    EXPECT_EQ((co_await c.post(s.url("/hello"), "x")).status(), 405);
    http::headers range;
    range.set("range", "bytes=0-3");
    const http::response part = co_await c.get(s.url("/hello"), range);
    EXPECT_EQ(part.status(), 206);
    EXPECT_EQ(part.body(), "hell");
  });
}

TEST(http_client_foreign, python_answers_before_and_after_it_was_restarted) {
  if (path_of("python3").empty()) GTEST_SKIP() << "python3 is not installed";
  for (const char* version : {"HTTP/1.0", "HTTP/1.1"}) {
    SCOPED_TRACE(version);
    const foreign_server s;
    ask_before_and_after_a_restart(s,
                                   [&](const foreign_server& of) { return python(of, version); });
  }
}

TEST(http_client_foreign, python_gets_bodies) {
  if (path_of("python3").empty()) GTEST_SKIP() << "python3 is not installed";
  const foreign_server s;
  const foreign_process running(python(s, "HTTP/1.1"));
  weir::run([&]() -> task<> {
    http::client c;
    co_await wait_for(c, s);
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{500'000}}) {
      const std::string body(size, 'b');
      const http::response r = co_await c.post(s.url("/"), body);
      EXPECT_EQ(r.body(), body);
    }
  });
}
