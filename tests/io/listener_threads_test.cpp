// SPDX-License-Identifier: MIT
// accept, while the system reports errors: its call is replaced in this program.
#include <sys/syscall.h>

#include <deque>

#include "io_support.hpp"

using namespace weir_test;

namespace {

std::deque<int> accept_errors;  // of the next calls

}  // namespace

extern "C" int accept4(int descriptor, sockaddr* from, socklen_t* size, int flags) {
  if (accept_errors.empty())
    return static_cast<int>(::syscall(SYS_accept4, descriptor, from, size, flags));
  errno = accept_errors.front();
  accept_errors.pop_front();
  return -1;
}

TEST(listener, what_has_broken_a_waiting_connection_does_not_come_out_of_accept) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    plain_socket client = plain_socket::dial(l.port());
    accept_errors = {EINTR, ECONNABORTED, EPROTO, ENETDOWN, EHOSTUNREACH, EINTR};
    io::socket c = co_await l.accept();
    EXPECT_TRUE(accept_errors.empty());
    EXPECT_EQ(c.peer().address(), "127.0.0.1");
  };
  weir::run(program);
}

TEST(listener, an_error_of_its_own_comes_out_of_accept_and_loses_no_connection) {
  auto program = []() -> task<> {
    auto l = co_await io::listen();
    plain_socket client = plain_socket::dial(l.port());
    for (const int error : {EMFILE, ENFILE, ENOBUFS}) {
      accept_errors = {error};
      const std::exception_ptr failure = co_await attempt([&] { return l.accept(); });
      EXPECT_EQ(code_of(failure).value(), error);
      EXPECT_TRUE(contains(what_of(failure), l.local().str())) << what_of(failure);
    }
    io::socket c = co_await l.accept();
    EXPECT_TRUE(client.send("x"));
    EXPECT_EQ(co_await read_next(c, 4), "x");
  };
  weir::run(program);
}

TEST(serve, pauses_at_each_shortage_and_goes_on) {
  text_log paused;
  auto seen = [&](const weir::event_info& e) {
    if (e.name == "accept_paused") paused.push_back(std::to_string(e.number));
  };
  auto handler = [](io::socket& c) -> task<> { co_await c.write_all("hello"); };
  auto program = [&]() -> task<> {
    auto l = co_await io::listen();
    auto sub = weir::on_event(seen);
    accept_errors = {EMFILE, ENFILE, ENOMEM};
    plain_socket client = plain_socket::dial(l.port());
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto serve = [&]() -> task<> { co_await io::serve(l, handler); };
      s.background(serve);
      std::string got;
      co_await wait_until([&] {
        got = client.arrived();
        return !got.empty();
      });
      EXPECT_EQ(got, "hello");
    });
  };
  weir::test_clock clock;
  clock.auto_advance(true);
  weir::run({.clock = &clock}, program);
  EXPECT_EQ(paused,
            (text_log{std::to_string(EMFILE), std::to_string(ENFILE), std::to_string(ENOMEM)}));
}
