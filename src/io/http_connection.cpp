// SPDX-License-Identifier: MIT
#include "io/http_connection.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include <weir/combinators.hpp>
#include <weir/detail/core/duration.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>
#include <weir/time.hpp>

#include "io/http_write.hpp"

namespace weir::detail {

namespace {

constexpr std::uint64_t max_discarded = 64 * 1024;
constexpr std::uint64_t max_lingered = 1024 * 1024;
constexpr duration linger_time = std::chrono::seconds(1);

/// The rounds of the ready queue after which a fiber that is still parked waits for something else
/// than the work of other fibers, or of a stream that it pulls.
constexpr int rounds_until_parked = 64;

/// Whether its fiber is parked. One that is about to go on is not.
bool is_parked(const child<void>& request) noexcept {
  const auto& f = static_cast<const fiber&>(*request.core());
  return f.parked != nullptr && !f.queued;
}

}  // namespace

http_connection::~http_connection() {
  leave_idle();
  if (x_ == nullptr) return;
  end_exchange();
  server_.give_back(std::move(x_));
}

/// A read of the body that still waits would take what comes next, the following request.
void http_connection::end_exchange() noexcept {
  if (x_->body_is_read() && socket_.core() != nullptr)
    socket_.core()->end_wait(io_side::read, "belongs to a request whose answer has ended");
  x_->end();
}

void http_connection::enter_idle() noexcept {
  next_idle_ = server_.idle_;
  if (next_idle_ != nullptr) next_idle_->at_idle_ = &next_idle_;
  at_idle_ = &server_.idle_;
  server_.idle_ = this;
}

void http_connection::leave_idle() noexcept {
  if (at_idle_ == nullptr) return;
  *at_idle_ = next_idle_;
  if (next_idle_ != nullptr) next_idle_->at_idle_ = at_idle_;
  at_idle_ = nullptr;
}

// One frame, because 10,000 connections may wait here. A wait that ends with 0 or with an error:
// the client has ended the connection or was silent for too long, or the server drains.
task<> http_connection::run(http_server& server, io::socket& socket) {
  http_connection c(server, socket);
  for (bool open = true; open;) {
    if (c.x_ != nullptr && c.x_->in.empty()) server.give_back(std::move(c.x_));
    if (c.x_ == nullptr) {
      if (server.is_draining()) co_return;
      std::size_t n = 0;
      c.enter_idle();
      try {
        n = co_await with_timeout(server.options().idle_timeout, socket.read_some(c.first_));
      } catch (const error&) {
        n = 0;
      }
      c.leave_idle();
      if (n == 0) co_return;
      c.take_first(n);
    }
    open = co_await c.exchange();
  }
}

void http_connection::take_first(std::size_t n) {
  x_ = server_.borrow();
  std::copy_n(first_.begin(), n, x_->in.room(n).begin());
  x_->in.added(n);
}

/// False: the connection has ended.
task<bool> http_connection::exchange() {
  x_->begin(*this);
  http_fault fault = co_await read_head();
  if (x_->broken) co_return false;
  if (!fault) fault = x_->prepare();
  if (fault) {
    co_await refuse(fault);
    co_return false;
  }
  keep_ = false;
  auto body = [this](scope& s) { return watch(s); };
  const outcome<void> how = co_await settle(with_scope({.name = "request"}, body));
  std::shared_ptr<response_upgrade> upgrade;
  if (x_->answer) upgrade = x_->answer->upgrade();
  end_exchange();
  if (how.is_error()) std::rethrow_exception(how.error());
  if (how.is_cancelled() || x_->broken) co_return false;  // and with it an upgrade
  if (x_->cut) {
    if (x_->head.minor == 0) reset_on_close();
    co_return false;
  }
  if (upgrade != nullptr) {
    co_await upgrade->run(server_, std::move(socket_), std::move(x_->in));
    co_return false;
  }
  bool kept = keep_;
  if (kept) kept = co_await discard_body();
  if (kept) co_return true;
  if (!x_->broken && (x_->fault || !x_->body.ended() || !x_->in.empty())) co_await linger();
  co_return false;
}

/// Broken: the client has gone.
task<http_fault> http_connection::read_head() {
  const time_point limit = saturating_add(now(), server_.options().header_timeout);
  for (;;) {
    const auto found = x_->head_reader.read_request(x_->in.view(), x_->head);
    if (found.consumed > 0) x_->in.consume(found.consumed);
    if (found.consumed > 0 || found.fault) co_return found.fault;
    std::size_t n = 0;
    try {
      n = co_await with_deadline(limit, socket_.read_some(x_->in.room(1)));
    } catch (const timeout_error&) {
      co_return http_fault{408, "the header did not come in time"};
    } catch (const error&) {
      x_->broken = true;
      co_return http_fault{};
    }
    if (n == 0) co_return http_fault{400, "the request ends within its header"};
    x_->in.added(n);
  }
}

task<> http_connection::refuse(http_fault fault) {
  http::response r(fault.status, std::string(fault.text) + "\n");
  if (fault.status == 405) r.set("allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  x_->answer.emplace(std::move(r));
  x_->head.minor = 1;
  try {
    x_->compose(false, wall_now());
    co_await write(x_->out);
  } catch (const error&) {
    co_return;
  }
  co_await linger();
}

// ------------------------------------------------------------------ watching

task<> http_connection::watch(scope& s) {
  const child<void> request = s.spawn(answer(s), {.name = "handler"});
  // Most handlers have ended after this, and the client need not be watched.
  co_await yield();
  if (request.done()) co_return;
  co_await race(request, socket_.hangup());
  if (!request.done()) co_await watch_after_hangup(s, request);
}

task<> http_connection::watch_after_hangup(scope& s, const child<void>& request) {
  bool gone = true;
  if (server_.options().half_close) gone = co_await is_reset();
  if (!gone) {
    co_await request;
    co_return;
  }
  while (!request.done()) {
    co_await race(request, x_->write_ended.wait());
    const bool parked = co_await stays_parked(request);
    if (!parked) continue;
    s.cancel(cancel_reason(cancel_kind::remote, "the client has gone"));
    co_return;
  }
}

/// Whether the request is parked, and not on a write, for a while in which everything that is ready
/// has run.
task<bool> http_connection::stays_parked(const child<void>& request) {
  const std::uint64_t writes = x_->writes;
  for (int i = 0; i < rounds_until_parked; ++i) {
    co_await yield();
    if (request.done() || !is_parked(request) || x_->writes != writes) co_return false;
  }
  co_return true;
}

/// Whether the client has reset the connection, as far as that can be seen without the bytes of a
/// body, which are the handler's.
task<bool> http_connection::is_reset() {
  while (x_->body.ended()) {
    try {
      const std::size_t n = co_await socket_.read_some(x_->in.room(1));
      if (n == 0) co_return false;
      x_->in.added(n);
    } catch (const error&) {
      co_return true;
    }
    if (x_->in.view().size() > max_lingered) co_return false;
  }
  co_return false;
}

// ------------------------------------------------------------------ reading and writing

namespace {

/// Waits for bytes of a body, which are in the exchange's buffer then. It may be started, and
/// started again, when the exchange and the socket are gone.
class body_wait : public io_operation<body_wait> {
 public:
  struct args {
    body_access* access;
    stream_core* core;
  };
  using result = std::size_t;

  explicit body_wait(args&& a) noexcept
      : io_operation(a.core, io_side::read, "body"), access_(*a.access) {}

  bool try_now() noexcept {
    try {
      http_exchange& x = access_.open();
      if (!may_try()) return true;
      const io_try got = static_cast<stream_core&>(*source_).read(x.in.room(16 * 1024));
      if (got.error == EAGAIN) return false;
      if (got.error != 0) return fail(got.error);
      x.in.added(got.bytes);
      bytes_ = got.bytes;
    } catch (...) {
      return fail(std::current_exception());
    }
    return true;
  }
  std::size_t take() {
    rethrow();
    return bytes_;
  }

 private:
  body_access& access_;
  std::size_t bytes_ = 0;
};

/// A read of the body waits.
class body_read_mark {
 public:
  explicit body_read_mark(body_access& access) noexcept : access_(access) { access.reading = true; }
  body_read_mark(const body_read_mark&) = delete;
  body_read_mark& operator=(const body_read_mark&) = delete;
  ~body_read_mark() { access_.reading = false; }

 private:
  body_access& access_;
};

[[noreturn]] void refuse_body(http_exchange& x, http_fault fault, errc code) {
  x.fault = fault;
  throw error(code, std::string("the body of a request: ") + fault.text);
}

/// Appends what is here of the body.
void take_body_piece(http_exchange& x, std::string& into) {
  if (x.fault) refuse_body(x, x.fault, errc::bad_data);
  const auto piece = x.body.read(x.in.view());
  x.body_bytes += piece.data.size();
  if (piece.fault) refuse_body(x, piece.fault, errc::bad_data);
  if (x.body_bytes > static_cast<std::uint64_t>(x.options.max_body))
    refuse_body(x, {413, "it is larger than the limit"}, errc::too_large);
  into.append(piece.data);
  x.in.consume(piece.consumed);
}

/// Whether the client waits for 100: not if the body is here already, or the answer has begun.
bool wants_continue(http_exchange& x) noexcept {
  return x.head.expects_continue && !std::exchange(x.continued, true) && x.body_bytes == 0 &&
         !x.answer_begun;
}

/// The body cannot be read any further, and nothing can be sent: if there is still an answer.
void mark_broken(const body_access& access) noexcept {
  if (access.exchange != nullptr) access.exchange->broken = true;
}

}  // namespace

task<bool> http_connection::read_body(std::shared_ptr<body_access> access, std::string& into) {
  const std::size_t before = into.size();
  for (;;) {
    take_body_piece(access->open(), into);
    if (into.size() > before) co_return true;
    if (access->open().body.ended()) co_return false;
    const bool asks = wants_continue(access->open());
    if (asks) co_await send_continue(access);
    const std::size_t n = co_await read_more(access);
    if (n == 0) refuse_body(access->open(), {400, "it ends too early"}, errc::end_of_stream);
  }
}

task<std::size_t> http_connection::read_more(std::shared_ptr<body_access> access) {
  const duration limit = access->open().options.progress_timeout;
  stream_core* const core = access->open().connection->socket_.core();
  const body_read_mark mark(*access);
  try {
    co_return co_await with_timeout(limit, pending<body_wait>({access.get(), core}));
  } catch (const error&) {
    mark_broken(*access);
    throw;
  }
}

task<> http_connection::send_continue(std::shared_ptr<body_access> access) {
  http_exchange& x = access->open();
  try {
    co_await with_timeout(x.options.progress_timeout,
                          x.connection->socket_.write_all("HTTP/1.1 100 Continue\r\n\r\n"));
  } catch (const error&) {
    mark_broken(*access);
    throw;
  }
}

/// Writes everything, as long as some bytes are sent in each `progress_timeout`.
task<> http_connection::write(std::string_view bytes) {
  x_->write_ended.reset();
  ++x_->writes;
  struct at_end {
    http_exchange& x;
    ~at_end() { x.write_ended.set(); }
  } mark{*x_};
  while (!bytes.empty()) {
    bool slow = false;
    try {
      co_await with_timeout(server_.options().progress_timeout, socket_.write_all(bytes));
    } catch (const timeout_error&) {
      if (socket_.written() == 0) throw;
      slow = true;
    }
    bytes.remove_prefix(slow ? socket_.written() : bytes.size());
  }
  x_->last_write = now();
}

/// Reads what the handler has not read, if that is little. False: the connection cannot be kept.
task<bool> http_connection::discard_body() {
  http_exchange& x = *x_;
  std::uint64_t thrown_away = 0;
  try {
    while (!x.body.ended()) {
      const auto piece = x.body.read(x.in.view());
      thrown_away += piece.consumed;
      x.in.consume(piece.consumed);
      x.body_bytes += piece.data.size();
      if (piece.fault || thrown_away > max_discarded) co_return false;
      if (x.body.ended() || !x.in.empty()) continue;
      const std::size_t n = co_await with_timeout(server_.options().progress_timeout,
                                                  socket_.read_some(x.in.room(16 * 1024)));
      if (n == 0) co_return false;
      x.in.added(n);
    }
  } catch (const error&) {
    x.broken = true;
    co_return false;
  }
  co_return true;
}

task<> http_connection::linger() {
  const time_point limit = now() + linger_time;
  std::uint64_t got = 0;
  try {
    socket_.shutdown_write();
    while (got < max_lingered) {
      x_->in.clear();
      const std::size_t n =
          co_await with_deadline(limit, socket_.read_some(x_->in.room(16 * 1024)));
      if (n == 0) co_return;
      got += n;
    }
  } catch (const error&) {
    co_return;  // the client has gone, or does not end its side
  }
}

}  // namespace weir::detail
