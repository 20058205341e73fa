// SPDX-License-Identifier: MIT
// How it drains: the connections are in a scope of their own, which a service of the outer scope
// holds open. A service sees no cancellation until the scope ends; then the outer scope pops its
// cleanup, newest first: the defer, which waits until the connections have ended, at most for
// `drain`; then the service, which is cancelled, and the connections with it.
#include <weir/io/serve.hpp>

#include <cerrno>
#include <new>

#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/run_scope.hpp>
#include <weir/event.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/shared.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>
#include <weir/time.hpp>

#include "core/loop.hpp"
#include "io/system.hpp"

namespace weir::detail {

namespace {

/// The system has no descriptor, or no memory, for another connection.
bool is_shortage(const std::error_code& code) noexcept {
  if (code.category() != std::system_category()) return false;
  const int error = code.value();
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

std::int64_t milliseconds_of(duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

class server {
 public:
  server(io::listener& l, connection_handler& handler, const io::serve_options& options,
         shared_governor* shared)
      : listener_(l.core()),
        handler_(handler),
        drain_(options.drain),
        handshake_timeout_(options.handshake_timeout),
        places_(options.max_connections),
        shared_places_(shared) {}

  task<> run(scope& s) {
    auto hold = [this]() -> task<> { co_await hold_connections(); };
    s.background(hold, {.name = "connections"});
    co_await opened_.wait();
    auto drain = [this]() -> task<> { co_await drain_connections(); };
    s.defer(drain);
    co_await accept_all();
  }

 private:
  task<> hold_connections() {
    auto body = [this](scope& s) -> task<> {
      connections_ = &s;
      opened_.set();
      co_await never_.wait();
    };
    co_await with_scope({.name = "connections", .failure = failure::isolate}, body);
  }

  task<> drain_connections() {
    handler_.draining();
    co_await settle(with_timeout(drain_, connections_->idle()));
  }

  task<> accept_all() {
    for (;;) {
      permit place;
      outcome<io::socket> next;
      if (shared_places_ == nullptr) {
        place = co_await places_.acquire();
        next = co_await settle(pending<accept_wait>({listener_.get()}));
      } else {
        next = co_await settle(accept_in_turn(place));
      }
      if (next.is_error()) {
        if (!co_await go_on_after(next.error())) co_return;
        continue;
      }
      pause_ = first_pause;
      connections_->spawn(connection(next.take(), std::move(place)), {.name = "connection"});
    }
  }

  /// A place that several loops share is taken when there is a connection for it: a loop that would
  /// hold one while it waits could keep the last one from a loop that has a client.
  task<io::socket> accept_in_turn(permit& place) {
    for (;;) {
      co_await pending<acceptable_wait>({listener_.get()});
      permit taken = co_await shared_places_->acquire();
      if (listener_->closed()) raise(errc::closed, listener_->text() + " was closed meanwhile");
      acceptor_core::accepted next = listener_->accept();
      if (next.core != nullptr) {
        place = std::move(taken);
        co_return io::socket(std::move(next.core));
      }
      // Of a socket that listened: its owner, on another loop, has closed it.
      if (next.error == EINVAL) raise(errc::closed, listener_->text() + " was closed meanwhile");
      if (next.error != EAGAIN) raise_system(next.error, "accept: " + listener_->text());
    }
  }

  /// False: the listener is closed.
  task<bool> go_on_after(std::exception_ptr problem) {
    std::error_code code;
    try {
      std::rethrow_exception(problem);
    } catch (const error& e) {
      code = e.code();
      if (code == errc::closed) co_return false;
      if (!is_shortage(code)) throw;
    } catch (const std::bad_alloc&) {
      code = std::error_code(ENOMEM, std::system_category());
    }
    loop::here()->emit("accept_paused", listener_->local().str(),
                       static_cast<std::uint64_t>(code.value()), 0, problem);
    co_await sleep(pause_);
    pause_ = std::min<duration>(pause_ * 2, std::chrono::seconds(1));
    co_return true;
  }

  // As settle(with_scope(...)), in one frame instead of three: ten thousand of these may be idle.
  task<> connection(io::socket c, permit) {
    scope s(scope_setup({.name = c.peer().str()}, std::source_location::current()),
            region_kind::scope);
    outcome<void> how;
    auto handle = [&] { return c.core()->must_shake_hands() ? handle_tls(c) : handler_.handle(c); };
    co_await detail::inside(s, how, handle);
    body_ended(s, how);
    if (has_loose_ends(s)) co_await detail::quietly(end_scope(s, how));
    if (!detail::apply_verdict(judge_scope(s, how), how)) co_await keep_unwinding{};
    if (how.is_error()) loop::here()->emit("connection_failed", s.name(), 0, 0, how.error());
    c.close();
  }

  task<> handle_tls(io::socket& c) {
    bool late = false;
    try {
      co_await with_timeout(handshake_timeout_, c.handshake());
    } catch (const timeout_error&) {
      late = true;
    }
    if (late)
      throw timeout_error("TLS handshake: " + c.core()->text() + ": it took longer than " +
                          std::to_string(milliseconds_of(handshake_timeout_)) +
                          " ms, the handshake_timeout of the server");
    co_await handler_.handle(c);
  }

  static constexpr duration first_pause = std::chrono::milliseconds(10);

  std::shared_ptr<acceptor_core> listener_;  // the caller's may be destroyed meanwhile
  connection_handler& handler_;
  duration drain_;
  duration handshake_timeout_;
  duration pause_ = first_pause;
  counting_governor places_;
  shared_governor* shared_places_;  // instead, if it is not null
  event opened_;
  event never_;
  scope* connections_ = nullptr;
};

void check(const io::serve_options& options) {
  if (options.max_connections < 1)
    raise(errc::invalid_argument, "serve: max_connections is " +
                                      std::to_string(options.max_connections) +
                                      "; give 1 or more, or unbounded");
  if (options.drain < duration::zero() || options.handshake_timeout < duration::zero())
    raise(errc::invalid_argument, "serve: drain and handshake_timeout are 0 or more");
}

}  // namespace

task<> serve_connections(io::listener& l, connection_handler& handler, io::serve_options options,
                         std::string name, shared_governor* places) {
  require_no_run("serve", name);
  check(options);
  if (l.core() == nullptr || l.core()->closed()) co_return;
  l.core()->require_home("listener");
  server s(l, handler, options, places);
  auto body = [&](scope& in) { return s.run(in); };
  co_await with_scope({.name = name, .grace = duration::max()}, body);
}

}  // namespace weir::detail
