// SPDX-License-Identifier: MIT
// A connection of an HTTP server: its fiber reads a head, then runs the handler and sends the
// answer in a child of a scope for this request, while it watches for the client to go away.
//
// Invariants:
// 1. Waiting for a request, it holds no exchange and so no buffer but `first_`.
// 2. Bytes behind a request stay in the exchange, which is returned when there are none.
// 3. The handler is cancelled when the client has gone and the fiber of the request is parked on
//    anything but a write, and stays so while everything that is ready runs: a handler that goes on
//    without parking gets its answer through, and a client that has ended its side can read a long
//    one.
// 4. Reads of the body that outlive the answer, in fibers that the handler has given it to, end
// with
//    the connection. They touch nothing of it after they have waited, unless it is still there.
// 5. After a fault of the input the connection is closed, lingering: the answer is not lost to the
//    reset that unread input would cause.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <weir/future.hpp>
#include <weir/io/socket.hpp>
#include <weir/scope.hpp>
#include <weir/task.hpp>

#include "io/http_exchange.hpp"
#include "io/http_server.hpp"

namespace weir::detail {

class http_connection {
 public:
  http_connection(http_server& server, io::socket& socket) noexcept
      : server_(server), socket_(socket) {}
  http_connection(const http_connection&) = delete;
  http_connection& operator=(const http_connection&) = delete;
  ~http_connection();

  /// Answers requests until one side ends the connection.
  static task<> run(http_server& server, io::socket& socket);
  /// The server drains: a connection that waits for a request ends.
  void close_idle() noexcept { socket_.close(); }

  // For the request.
  io::endpoint peer() const { return socket_.peer(); }
  /// Appends the next piece of the body; false at its end. In any fiber of the loop: if the answer
  /// ends meanwhile, errc::closed.
  static task<bool> read_body(std::shared_ptr<body_access> access, std::string& into);

 private:
  friend class http_server;

  void take_first(std::size_t n);
  task<bool> exchange();
  task<http_fault> read_head();
  task<> refuse(http_fault fault);

  /// Runs the request in the scope, until it has ended or the client has gone.
  task<> watch(scope& s);
  task<> watch_after_hangup(scope& s, const child<void>& request);
  task<bool> stays_parked(const child<void>& request);
  task<bool> is_reset();

  task<> answer(scope& s);
  task<http::response> call_handler();
  task<http::response> run_handler();
  http::response failure_of(const std::exception_ptr& problem);
  task<> send_answer(scope& s);
  task<> send_stream(scope& s);
  task<bool> next_piece(std::string& into);
  task<> send_comments(scope& s);
  task<> close_stream();

  static task<std::size_t> read_more(std::shared_ptr<body_access> access);
  static task<> send_continue(std::shared_ptr<body_access> access);
  task<> write(std::string_view bytes);
  bool may_keep() const noexcept;
  task<bool> discard_body();
  task<> linger();
  void reset_on_close() noexcept;

  void end_exchange() noexcept;
  void enter_idle() noexcept;
  void leave_idle() noexcept;

  http_server& server_;
  io::socket& socket_;
  std::unique_ptr<http_exchange> x_;
  http_connection* next_idle_ = nullptr;
  http_connection** at_idle_ = nullptr;  // what points to it, while it is idle
  bool keep_ = false;
  std::array<std::byte, 256> first_;  // of a request; enough for a short one
};

}  // namespace weir::detail
