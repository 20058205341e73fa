// SPDX-License-Identifier: MIT
// Sockets, files, signals and HTTP are refused in a run, before they have an effect; in a step they
// are allowed.
#include <weir/io.hpp>

#include <array>
#include <csignal>
#include <functional>
#include <utility>
#include <vector>

#include "durable/support/sources.hpp"
#include "durable/support/temporary_directory.hpp"

using namespace durable_test;
namespace io = weir::io;
namespace http = weir::http;

namespace {

using io_use = std::function<task<>()>;
using io_uses = std::vector<std::pair<std::string, io_use>>;

task<http::response> says_nothing(http::request&) { co_return http::response(204); }
task<> hangs_up(io::socket&) { co_return; }

/// What belongs to the world around the run.
struct io_outside {
  io::listener listener;
  io::socket near;
  io::socket far;
  io::udp datagrams;
  http::client client;

  task<> open() {
    listener = co_await io::listen();
    near = co_await io::connect("127.0.0.1", listener.port());
    far = co_await listener.accept();
    datagrams = co_await io::udp::bind();
  }
};

io_uses all_io_uses(io_outside& w, const std::string& file) {
  static std::array<std::byte, 8> room;
  return {
      {"listen", []() -> task<> { (void)co_await io::listen(); }},
      {"listen_unix", []() -> task<> { (void)co_await io::listen_unix("/s"); }},
      {"connect", []() -> task<> { (void)co_await io::connect("127.0.0.1", 1); }},
      {"connect_unix", []() -> task<> { (void)co_await io::connect_unix("/s"); }},
      {"accept", [&w]() -> task<> { (void)co_await w.listener.accept(); }},
      {"serve", [&w]() -> task<> { co_await io::serve(w.listener, hangs_up); }},
      {"read_some", [&w]() -> task<> { (void)co_await w.near.read_some(room); }},
      {"write_all", [&w]() -> task<> { co_await w.near.write_all("x"); }},
      {"shutdown_write",
       [&w]() -> task<> {
         w.near.shutdown_write();
         co_return;
       }},
      {"lines", [&w]() -> task<> { (void)co_await w.near.lines(10).next(); }},
      {"readable", []() -> task<> { co_await weir::readable(0); }},
      {"adopt_socket",
       []() -> task<> {
         (void)io::adopt_socket(0);
         co_return;
       }},
      {"udp::bind", []() -> task<> { (void)co_await io::udp::bind(); }},
      {"send_to", [&w]() -> task<> { co_await w.datagrams.send_to("x", w.datagrams.local()); }},
      {"receive_from", [&w]() -> task<> { (void)co_await w.datagrams.receive_from(room); }},
      {"process::run", []() -> task<> { (void)co_await io::process::run(io::command("true")); }},
      {"process::spawn",
       []() -> task<> {
         co_await weir::with_scope([](weir::scope& s) -> task<> {
           (void)io::process::spawn(s, io::command("true"));
           co_return;
         });
       }},
      {"signals",
       []() -> task<> {
         (void)io::signals(SIGUSR1);
         co_return;
       }},
      {"file::open", [file]() -> task<> { (void)co_await io::file::open(file, io::mode::write); }},
      {"write_file", [file]() -> task<> { co_await io::write_file(file, "x"); }},
      {"read_file", [file]() -> task<> { (void)co_await io::read_file(file); }},
      {"lines of a file", [file]() -> task<> { (void)co_await io::lines(file).next(); }},
      {"http::serve", [&w]() -> task<> { co_await http::serve(w.listener, says_nothing); }},
      {"get", [&w]() -> task<> { (void)co_await w.client.get("http://127.0.0.1/"); }},
      {"get of its own client",
       []() -> task<> {
         http::client own;
         (void)co_await own.get("http://127.0.0.1/");
       }},
  };
}

/// The names of those that are not refused, and how they end.
task<std::string> io_not_refused(const io_uses& all) {
  std::string wrong;
  for (const auto& [name, f] : all) {
    const std::exception_ptr error = co_await test_support::attempt(f);
    if (error != nullptr && test_support::code_of(error) == errc::not_journaled) continue;
    wrong += name + ": " + (error == nullptr ? "allowed" : test_support::what_of(error)) + "\n";
  }
  co_return wrong;
}

}  // namespace

TEST(durable_refusal, io_belongs_into_a_step) {
  const stage on;
  const weir_test::temporary_directory here;
  const std::string file = here / "f";
  auto program = [&]() -> task<> {
    io_outside w;
    co_await w.open();
    auto handler = [&](int) -> task<std::string> {
      const io_uses all = all_io_uses(w, file);
      const std::string wrong = co_await io_not_refused(all);
      auto body = [&]() -> task<std::string> {
        co_await w.near.write_all("from a step");
        co_await io::write_file(file, "x");
        co_return co_await io::read_file(file);
      };
      const std::string in_step = co_await weir::step("body", body);
      co_return wrong + in_step;
    };
    auto use_engine = [&](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
      EXPECT_EQ(co_await ending_of(run), "x");
    };
    co_await with_open_engine(options_for(on), as_h(handler), use_engine);
    std::string got(20, '\0');
    const std::size_t n = co_await w.far.read_some(std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got.substr(0, n), "from a step") << "and nothing before it";
  };
  sim::run({.seed = 1, .start_time = day0}, program);
}
