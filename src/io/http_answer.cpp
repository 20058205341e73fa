// SPDX-License-Identifier: MIT
// The fiber of a request: it runs the handler and sends the answer.
#include <charconv>
#include <cstdio>
#include <utility>

#include <weir/http/traceparent.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>
#include <weir/time.hpp>

#include "core/error.hpp"
#include "core/loop.hpp"
#include "io/http_connection.hpp"
#include "io/http_write.hpp"

namespace weir::detail {

namespace {

constexpr duration comment_every = std::chrono::seconds(15);
constexpr std::uint64_t max_unread = 64 * 1024;

/// Emits request_failed and returns the id that the client is told.
std::string report_failure(const std::exception_ptr& problem) {
  std::array<char, 17> id{};
  std::snprintf(id.data(), id.size(), "%016llx", static_cast<unsigned long long>(random()));
  loop::here()->emit("request_failed", id.data(), 0, this_scope().id(), problem);
  return id.data();
}

std::exception_ptr stream_sent_before() {
  return make_error(errc::already_taken,
                    "the stream of an http::response was sent before, by a copy of the response; "
                    "make a stream for each answer");
}

bool is_timeout(const std::exception_ptr& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (const timeout_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

task<> http_connection::answer(scope& s) {
  x_->answer.emplace(co_await call_handler());
  if (x_->broken) co_return;
  if (x_->streams() && std::exchange(x_->answer->streamed()->sent, true))
    x_->answer.emplace(failure_of(stream_sent_before()));
  try {
    co_await send_answer(s);
  } catch (const error&) {
    x_->broken = true;  // the client has gone, or does not read
  }
}

/// Never fails: an error is an answer.
task<http::response> http_connection::call_handler() {
  std::exception_ptr problem;
  try {
    co_return co_await run_handler();
  } catch (...) {
    problem = std::current_exception();
  }
  co_return failure_of(problem);
}

task<http::response> http_connection::run_handler() {
  task<http::response> run = server_.handler().handle(x_->request);
  if (x_->deadline) run = with_deadline(*x_->deadline, std::move(run));
  if (const auto trace = x_->head.find("traceparent"))
    run = with_local(http::traceparent, std::string(*trace), std::move(run));
  return run;
}

http::response http_connection::failure_of(const std::exception_ptr& problem) {
  if (x_->fault) return http::response(x_->fault.status, std::string(x_->fault.text) + "\n");
  if (x_->deadline && now() >= *x_->deadline && is_timeout(problem))
    return http::response(504, "the deadline of the request has passed\n");
  return http::response(500, "internal server error\n").set("x-error-id", report_failure(problem));
}

bool http_connection::may_keep() const noexcept {
  const http::response& r = *x_->answer;
  const auto connection = r.header("connection");
  return x_->head.keep_alive && !server_.is_draining() && !x_->fault && r.status() >= 200 &&
         !(connection && http_list_has(*connection, "close")) &&
         !(x_->streams() && !x_->chunked()) && x_->unread() <= max_unread;
}

task<> http_connection::send_answer(scope& s) {
  keep_ = may_keep();
  x_->answer_begun = true;
  const std::string_view rest = x_->compose(keep_, wall_now());
  co_await write(x_->out);
  if (!rest.empty()) co_await write(rest);
  if (x_->streams()) co_await send_stream(s);
}

task<> http_connection::send_stream(scope& s) {
  // On every way out, cancellation too, what the stream has to clean up is awaited.
  auto close = [this]() -> task<> { co_await close_stream(); };
  s.defer(close);
  if (x_->answer->streamed()->events) s.background(send_comments(s), {.name = "comments"});
  std::exception_ptr problem;
  for (bool more = true; more;) {
    x_->out.clear();
    try {
      more = co_await next_piece(x_->out);
    } catch (...) {
      problem = std::current_exception();
    }
    const mutex_guard turn = co_await x_->turn.lock();
    x_->stream_ended = !more || problem != nullptr;
    if (problem != nullptr) break;
    if (!more && x_->chunked()) append_last_chunk(x_->out);
    if (!x_->out.empty()) co_await write(x_->out);
  }
  if (problem == nullptr) co_return;
  report_failure(problem);
  x_->cut = true;
}

/// Appends the next piece, framed; false at the end.
task<bool> http_connection::next_piece(std::string& into) {
  response_stream& from = *x_->answer->streamed();
  std::string text;
  if (from.pieces) {
    auto piece = co_await from.pieces->next();
    if (!piece) co_return false;
    text = std::move(*piece);
  } else {
    const auto event = co_await from.events->next();
    if (!event) co_return false;
    text = event->text();
  }
  if (x_->chunked()) {
    append_chunk(into, text);
  } else {
    into += text;
  }
  co_return true;
}

/// Runs beside a stream of events; the writer of the moment has the turn.
task<> http_connection::send_comments(scope& s) {
  const std::string_view comment = x_->chunked() ? "3\r\n:\n\n\r\n" : ":\n\n";
  for (;;) {
    const time_point due = x_->last_write + comment_every;
    co_await sleep_until(due);
    const mutex_guard turn = co_await x_->turn.lock();
    if (x_->stream_ended) co_return;
    if (now() < x_->last_write + comment_every) continue;
    bool gone = false;
    try {
      co_await write(comment);
    } catch (const error&) {
      gone = true;
    }
    if (!gone) continue;
    s.cancel(cancel_reason(cancel_kind::remote, "the client has gone"));
    co_return;
  }
}

task<> http_connection::close_stream() {
  if (!x_->answer || x_->answer->streamed() == nullptr) co_return;
  response_stream& of = *x_->answer->streamed();
  if (of.pieces) co_await of.pieces->close();
  if (of.events) co_await of.events->close();
}

/// A body that ends with the connection has no other mark of a failure.
void http_connection::reset_on_close() noexcept {
  if (socket_.core() != nullptr && !socket_.core()->closed()) socket_.core()->cut();
}

}  // namespace weir::detail
