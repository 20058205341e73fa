// SPDX-License-Identifier: MIT
#include "io/http_client_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>

#include <weir/http/traceparent.hpp>
#include <weir/io/connect.hpp>
#include <weir/io/tls.hpp>
#include <weir/scope.hpp>
#include <weir/time.hpp>

#include "io/http_text.hpp"
#include "io/http_write.hpp"

namespace weir::detail {

namespace {

constexpr std::size_t small_request = 16 * 1024;
constexpr std::uint64_t max_discarded_answer = 64 * 1024;
constexpr int max_interim_answers = 100;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) noexcept {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// At least 1: what is left of a deadline that has not passed.
std::uint64_t milliseconds_until(time_point at) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(at - now()).count();
  return left < 1 ? 1 : static_cast<std::uint64_t>(left);
}

/// The connection is of no use any more, or was not when it was used.
bool is_dead(const error& e) noexcept {
  return e.code() == errc::end_of_stream || e.code() == errc::tls_truncated ||
         e.code().category() == std::system_category();
}

}  // namespace

// ------------------------------------------------------------------ the request

bool client_request::may_repeat() const noexcept {
  return !streams() && is_one_of(method, {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"});
}

void client_request::check() const {
  const auto refuse = [this](const std::string& why) {
    raise(errc::invalid_argument, text() + ": " + why);
  };
  if (!is_http_token(method) || method == "CONNECT") refuse("'" + method + "' is not a method");
  for (const char* name : {"transfer-encoding", "expect", "upgrade"})
    if (fields.has(name)) refuse(std::string("the client cannot send the header ") + name);
  if (const auto length = fields.get("content-length");
      length && (streams() || plain_digits(*length) != body.text_.size()))
    refuse("content-length is not the length of the body; leave it to the client");
  int hosts = 0;
  for (const http::headers::field& f : fields) {
    if (!same_ignoring_case(f.name(), "host")) continue;
    if (++hosts > 1) refuse("there are two headers host");
    if (!is_http_host(f.value())) refuse("the header host is not a host");
  }
}

// ------------------------------------------------------------------ sending

client_upload::client_upload(io::socket& to, client_request& request)
    : socket_(to), request_(request) {
  append_request_line(out_, request.method, request.url.target);
  if (!request.fields.has("host")) append_http_field(out_, "host", request.url.authority());
  for (const http::headers::field& f : request.fields)
    if (!same_ignoring_case(f.name(), "content-length"))
      append_http_field(out_, f.name(), f.value());
  if (request.deadline && !request.fields.has("x-deadline-ms"))
    append_http_field(out_, "x-deadline-ms", milliseconds_until(*request.deadline));
  const std::size_t size = request.body.text_.size();
  if (request.streams()) {
    append_http_field(out_, "transfer-encoding", "chunked");
  } else if (size > 0 || is_one_of(request.method, {"POST", "PUT", "PATCH"})) {
    append_http_field(out_, "content-length", size);
  }
  append_head_end(out_);
  if (!request.streams() && out_.size() + size <= small_request) {
    out_ += request.body.text_;
    body_begun_ = true;
  }
  last_ = body_begun_;
  rest_ = out_;
}

bool client_upload::is_small() const noexcept { return last_; }

/// Whatever ends a write, what it has sent is not sent again.
struct client_upload::progress {
  explicit progress(client_upload& u) noexcept : of(u) { of.socket_.core()->written = 0; }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { of.rest_.remove_prefix(std::min(of.socket_.written(), of.rest_.size())); }
  client_upload& of;
};

task<> client_upload::run() {
  while (!ended_) {
    try {
      const progress mark(*this);
      co_await socket_.write_all(rest_);
    } catch (const error&) {
      ended_ = failed_ = true;  // an answer may have come nevertheless
      co_return;
    }
    if (last_) {
      ended_ = true;
    } else {
      co_await refill();
    }
  }
}

task<> client_upload::refill() {
  if (!request_.streams()) {
    rest_ = request_.body.text_;
    last_ = true;
    co_return;
  }
  const std::optional<std::string> piece = co_await request_.body.stream_->next();
  out_.clear();
  if (piece) {
    append_chunk(out_, *piece);
  } else {
    append_last_chunk(out_);
    last_ = true;
  }
  rest_ = out_;
}

// ------------------------------------------------------------------ the exchange

void client_exchange::fail(errc code, const std::string& why) {
  raise(code, request_->text() + ": " + why);
}

task<> client_exchange::begin(client_request request) {
  request_.emplace(std::move(request));
  request_->check();
  if (const std::string& trace = http::traceparent.get();
      !trace.empty() && !request_->fields.has("traceparent"))
    request_->fields.set("traceparent", trace);
  origin_.emplace(core(), core().origin_of(request_->url));
  origin_->place = co_await origin_->origin().places.acquire();
  connection_ = core().take_kept(origin_->origin());
  if (connection_ == nullptr) co_await connect();
  bool dead = false;
  try {
    co_await send_and_read_head();
  } catch (const error& e) {
    dead = connection_->kept && !answered_ && request_->may_repeat() && is_dead(e);
    if (!dead) throw;
  }
  if (!dead) co_return;
  co_await connect();
  co_await send_and_read_head();
}

task<> client_exchange::connect() {
  upload_.reset();
  connection_.reset();
  const http_url& url = request_->url;
  io::socket made;
  if (url.tls) {
    const io::tls_options how{.ca_file = core().ca_file(), .alpn = "http/1.1"};
    made = co_await io::tls_connect(url.host, url.port, how);
  } else {
    made = co_await io::connect(url.host, url.port);
  }
  connection_ = std::make_unique<client_connection>(std::move(made));
}

task<> client_exchange::send_and_read_head() {
  upload_.emplace(connection_->socket, *request_);
  if (upload_->is_small()) co_await upload_->run();
  co_await alongside_upload(read_head());
  if (body_.ended()) finish();
}

task<> client_exchange::alongside_upload(task<> read) {
  if (upload_->ended()) {
    co_await std::move(read);
    co_return;
  }
  auto body = [&](scope& s) -> task<> {
    s.background(upload_->run());
    co_await std::move(read);
  };
  co_await with_scope(body);
}

task<std::size_t> client_exchange::receive(std::size_t least) {
  http_buffer& in = connection_->in;
  const std::size_t n = co_await connection_->socket.read_some(in.room(least));
  in.added(n);
  answered_ = answered_ || n > 0;
  co_return n;
}

task<> client_exchange::read_head() {
  http_buffer& in = connection_->in;
  for (int interim = 0;;) {
    const auto found = head_reader_.read_response(in.view(), head_, request_->method == "HEAD");
    if (found.fault)
      fail(errc::bad_data, std::string("the answer is not valid: ") + found.fault.text);
    in.consume(found.consumed);
    if (found.consumed == 0) {
      if (co_await receive(4096) == 0)
        fail(errc::end_of_stream, "the server closed the connection before it had answered");
      continue;
    }
    if (head_.status >= 200) break;
    if (head_.status == 101 || ++interim > max_interim_answers)
      fail(errc::bad_data, "the server answered with status " + std::to_string(head_.status) +
                               ", which was not asked for");
  }
  status_ = head_.status;
  for (const http_field& f : head_.fields) fields_.add_checked(f.name, f.value);
  body_.begin(head_.framing, head_.length);
}

task<bool> client_exchange::read_piece(std::string& into) {
  if (failed_) fail(errc::closed, "the answer has failed before, and is not read any further");
  if (!unread_.empty()) {
    into.append(std::exchange(unread_, {}));
    if (body_.ended()) finish();
    co_return true;
  }
  if (connection_ == nullptr) co_return false;
  bool any = false;
  failed_ = true;  // unless it ends well, or is cancelled, which takes nothing
  struct unless_cancelled {
    bool& failed;
    ~unless_cancelled() {
      if (unwinding() != nullptr) failed = false;
    }
  } mark{failed_};
  // While the request is sent, the read ends with a wait until that is interrupted. Cancelled in
  // there, it has taken a piece, which the next call returns.
  std::string& piece = upload_->ended() ? into : unread_;
  auto read = [&]() -> task<> { any = co_await read_piece_alone(piece); };
  co_await alongside_upload(read());
  if (&piece != &into) into.append(std::exchange(unread_, {}));
  if (body_.ended()) finish();
  failed_ = false;
  co_return any;
}

task<bool> client_exchange::read_piece_alone(std::string& into) {
  http_buffer& in = connection_->in;
  while (!body_.ended()) {
    const auto piece = body_.read(in.view());
    if (piece.fault)
      fail(errc::bad_data, std::string("the body is not valid: ") + piece.fault.text);
    into.append(piece.data);
    received_ += piece.data.size();
    in.consume(piece.consumed);
    if (!piece.data.empty()) co_return true;
    if (body_.ended()) break;
    const std::size_t got = co_await receive(16 * 1024);
    if (got == 0 && !body_.end_of_input())
      fail(errc::end_of_stream,
           "the body of the answer was cut short after " + std::to_string(received_) + " bytes");
  }
  co_return false;
}

/// The answer was read, and nothing is being sent. What was not sent until now never is.
void client_exchange::finish() {
  const auto connection = request_->fields.get("connection");
  const bool idle = head_.keep_alive && connection_->in.empty() && upload_->ended() &&
                    !upload_->failed() && !(connection && http_list_has(*connection, "close"));
  upload_.reset();
  if (idle) core().keep(origin_->origin(), std::move(connection_));
  connection_.reset();
  origin_.reset();
}

task<http::response> client_exchange::read_response() {
  const auto max = static_cast<std::uint64_t>(core().options().max_body);
  const auto refuse = [&] {
    fail(errc::too_large, "the body of the answer is larger than " + std::to_string(max) +
                              " bytes; raise max_body, or use open");
  };
  if (head_.framing == http_framing::length && head_.length > max) refuse();
  std::string body;
  while (co_await read_piece(body))
    if (received_ > max) refuse();
  co_return http::response(status_, std::move(fields_), std::move(body));
}

task<> client_exchange::discard() {
  std::string ignored;
  try {
    for (bool more = true; more && received_ < max_discarded_answer;) {
      more = co_await read_piece(ignored);
      ignored.clear();
    }
  } catch (const error&) {
    upload_.reset();  // the answer is not needed, and the connection of no use
    connection_.reset();
  }
}

}  // namespace weir::detail
