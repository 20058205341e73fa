// SPDX-License-Identifier: MIT
#include <weir/http/client.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <weir/context.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/time.hpp>

#include "io/http_client_core.hpp"
#include "io/http_client_exchange.hpp"
#include "io/resolver.hpp"

namespace weir::http {

namespace {

using detail::client_exchange;
using detail::client_request;
using core_ref = std::shared_ptr<detail::client_core>;
using exchange_ref = std::unique_ptr<client_exchange>;

/// What a caller asked for: everything is a copy.
struct asked {
  asked(std::string_view how, std::string_view where, request_body what, headers with)
      : method(how), url(where), body(std::move(what)), fields(std::move(with)) {}

  std::string method;
  std::string url;
  request_body body;
  headers fields;
};

// ------------------------------------------------------------------ redirects

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// Whether the redirected request is a GET without a body.
bool becomes_get(int status, std::string_view method) noexcept {
  if (status == 303) return method != "HEAD";
  return (status == 301 || status == 302) && method == "POST";
}

/// Where the answer sends the request; empty if that is not followed.
std::optional<detail::http_url> next_url(client_exchange& x) {
  const client_request& r = x.request();
  const redirects allowed = x.core().options().redirects;
  const auto location = x.fields().get("location");
  if (allowed == redirects::none || !is_redirect(x.status()) || !location) return std::nullopt;
  auto url = detail::resolve_location(r.url, *location);
  if (!url) return std::nullopt;
  if (r.streams() && !becomes_get(x.status(), r.method)) return std::nullopt;
  if (allowed == redirects::same_host && !url->same_host(r.url)) return std::nullopt;
  if (allowed != redirects::any && r.url.tls && !url->tls) return std::nullopt;
  return url;
}

void redirect(client_request& r, int status, detail::http_url to) {
  if (becomes_get(status, r.method)) {
    r.method = "GET";
    r.body = request_body();
    for (const char* name : {"content-length", "content-type", "content-encoding"})
      r.fields.erase(name);
  }
  if (!to.same_origin(r.url)) {
    // Another port is another server, too.
    for (const char* name : {"authorization", "cookie", "host"}) r.fields.erase(name);
  }
  r.url = std::move(to);
}

// ------------------------------------------------------------------ requests

/// Runs a request until the head of the answer that is not redirected.
task<exchange_ref> answer_to(core_ref core, client_request r) {
  for (std::int64_t redirected = 0;; ++redirected) {
    auto x = std::make_unique<client_exchange>(core);
    co_await x->begin(std::move(r));
    std::optional<detail::http_url> next = next_url(*x);
    if (!next) co_return x;
    if (redirected == core->options().max_redirects)
      detail::raise(errc::too_many_redirects, x->request().text() + ": redirected more than " +
                                                  std::to_string(redirected) +
                                                  " times, at last to " + next->str());
    co_await x->discard();
    const int status = x->status();
    r = std::move(x->request());
    redirect(r, status, std::move(*next));
  }
}

client_request make_request(asked a) {
  client_request r;
  r.url = detail::parse_url(a.url);
  r.method = std::move(a.method);
  r.fields = std::move(a.fields);
  r.body = std::move(a.body);
  r.check();
  return r;
}

/// Runs `op` for at most `limit` and says what took too long.
template <class T, class Op>
task<T> in_time(duration limit, std::string what, Op op) {
  const time_point start = now();
  try {
    co_return co_await with_timeout(limit, op);
  } catch (const timeout_error&) {
    if (now() - start < limit) throw;  // of a stream that is the body
  }
  throw timeout_error(
      what + " took longer than " +
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(limit).count()) +
      " ms, the timeout of the client");
}

task<response> ask(core_ref core, asked a) {
  const detail::client_use use(core);
  client_request r = make_request(std::move(a));
  const duration limit = core->options().timeout;
  r.deadline = this_context().deadline();
  const time_point start = now();
  if (time_point::max() - start > limit)
    r.deadline = r.deadline ? std::min(*r.deadline, start + limit) : start + limit;
  const std::string what = r.text();
  auto exchange = [&]() -> task<response> {
    exchange_ref x = co_await answer_to(core, std::move(r));
    co_return co_await x->read_response();
  };
  co_return co_await in_time<response>(limit, what, exchange);
}

task<incoming> ask_to_open(core_ref core, asked a) {
  detail::client_use use(core);
  client_request r = make_request(std::move(a));
  r.deadline = this_context().deadline();
  const std::string what = r.text();
  auto exchange = [&]() -> task<exchange_ref> { return answer_to(core, std::move(r)); };
  exchange_ref x = co_await in_time<exchange_ref>(core->options().timeout, what, exchange);
  x->hold(std::move(use));
  co_return incoming(std::move(x));
}

/// One pull of an incoming at a time.
class reading_mark {
 public:
  explicit reading_mark(bool& reading) : reading_(reading) {
    if (reading)
      detail::raise(errc::busy, "http::incoming: another next() is pending; one at a time");
    reading = true;
  }
  reading_mark(const reading_mark&) = delete;
  reading_mark& operator=(const reading_mark&) = delete;
  ~reading_mark() { reading_ = false; }

 private:
  bool& reading_;
};

task<std::optional<std::string>> next_piece(client_exchange* x) {
  if (x == nullptr) detail::raise(errc::closed, "http::incoming: it was moved from");
  const reading_mark mark(x->reading);
  std::string piece;
  auto read = [&]() -> task<bool> { return x->read_piece(piece); };
  const bool any =
      co_await in_time<bool>(x->core().options().timeout, x->request().text() + ": a piece", read);
  if (!any) co_return std::nullopt;
  co_return piece;
}

const headers no_headers;

}  // namespace

// ------------------------------------------------------------------ client

client::client(client_options options) : core_(std::make_shared<detail::client_core>(options)) {}

client::~client() { core_->close(); }

task<response> client::get(std::string_view url, headers fields) {
  return ask(core_, asked("GET", url, request_body(), std::move(fields)));
}
task<response> client::post(std::string_view url, request_body body, headers fields) {
  return ask(core_, asked("POST", url, std::move(body), std::move(fields)));
}
task<response> client::request(std::string_view method, std::string_view url, request_body body,
                               headers fields) {
  return ask(core_, asked(method, url, std::move(body), std::move(fields)));
}
task<incoming> client::open(std::string_view method, std::string_view url, request_body body,
                            headers fields) {
  return ask_to_open(core_, asked(method, url, std::move(body), std::move(fields)));
}

// ------------------------------------------------------------------ incoming

incoming::incoming(std::unique_ptr<detail::client_exchange> exchange) noexcept
    : exchange_(std::move(exchange)) {}
incoming::incoming(incoming&&) noexcept = default;
incoming& incoming::operator=(incoming&&) noexcept = default;
incoming::~incoming() = default;

int incoming::status() const noexcept { return exchange_ == nullptr ? 0 : exchange_->status(); }
const headers& incoming::headers() const noexcept {
  return exchange_ == nullptr ? no_headers : exchange_->fields();
}
void incoming::raise_for_status() const {
  if (status() >= 400) throw status_error(status());
}
task<std::optional<std::string>> incoming::next() { return next_piece(exchange_.get()); }

// ------------------------------------------------------------------ is_transient

bool is_transient(const std::exception_ptr& failure) noexcept {
  if (failure == nullptr) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const timeout_error&) {
    return true;
  } catch (const detail::temporary_host_error&) {
    return true;
  } catch (const std::system_error& e) {
    return e.code() == errc::end_of_stream || e.code() == errc::tls_truncated ||
           e.code() == std::errc::connection_refused || e.code() == std::errc::connection_reset ||
           e.code() == std::errc::broken_pipe || e.code() == std::errc::connection_aborted ||
           e.code() == std::errc::timed_out;
  } catch (...) {
    return false;
  }
}

}  // namespace weir::http
