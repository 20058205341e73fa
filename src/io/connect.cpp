// SPDX-License-Identifier: MIT
#include <weir/io/connect.hpp>

#include <optional>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include <weir/combinators.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/event.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>
#include <weir/time.hpp>

#include "core/loop.hpp"
#include "io/descriptor_stream.hpp"
#include "io/open_socket.hpp"
#include "io/resolver.hpp"
#include "io/sim_transport.hpp"
#include "io/system.hpp"

namespace weir {

namespace detail {

namespace {

/// Waits until a connect that is under way has succeeded or failed: an error of the system, or 0.
class connected_wait : public io_operation<connected_wait> {
 public:
  struct args {
    descriptor_stream* core;
  };
  using result = int;

  explicit connected_wait(args&& a) noexcept : io_operation(a.core, io_side::write, "connect") {}
  bool try_now() noexcept {
    if (!may_try()) return true;
    const int descriptor = static_cast<descriptor_stream&>(*source_).native_handle();
    pollfd asked{descriptor, POLLOUT, 0};
    if (::poll(&asked, 1, 0) <= 0) return false;
    socklen_t size = sizeof error_;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error_, &size) != 0) error_ = errno;
    return true;
  }
  int take() {
    rethrow();
    return error_;
  }

 private:
  int error_ = 0;
};

struct attempt {
  std::unique_ptr<descriptor_stream> core;
  int error = 0;
};

task<attempt> try_to_connect(io::endpoint at) {
  const system_address address = to_system(at);
  owned_descriptor made(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) co_return attempt{nullptr, errno};
  if (at.type() != io::endpoint::kind::unix_path) set_no_delay(made.get());
  const int result = ::connect(made.get(), address.get(), address.size);
  const int error = result == 0 ? 0 : errno;
  if (error != 0 && error != EINPROGRESS && error != EINTR) co_return attempt{nullptr, error};
  attempt tried{std::make_unique<descriptor_stream>(std::move(made), at), 0};
  if (error != 0) tried.error = co_await pending<connected_wait>({tried.core.get()});
  // TCP connects a socket with itself if the port that the system picks for it is the one that it
  // connects to: then no process listens there.
  if (tried.error == 0 && at.port() != 0 && tried.core->local() == at) tried.error = ECONNREFUSED;
  co_return tried;
}

/// The attempts of one connect, one per address.
struct attempts {
  std::unique_ptr<descriptor_stream> won;
  std::size_t running = 0;
  int last_error = 0;
  std::string errors;
  event changed;

  void failed(const io::endpoint& at, int error) {
    last_error = error;
    if (!errors.empty()) errors += "; ";
    errors += at.str() + ": " + std::error_code(error, std::system_category()).message();
  }
};

task<> one_attempt(attempts& all, io::endpoint at) {
  attempt tried = co_await try_to_connect(at);
  --all.running;
  if (tried.error != 0) {
    all.failed(at, tried.error);
  } else if (all.won == nullptr) {
    all.won = std::move(tried.core);
  }
  all.changed.set();
}

/// Until an attempt has ended, at most for `limit`.
task<> wait_for_change(attempts& all, duration limit) {
  const auto waited = co_await settle(with_timeout(limit, all.changed.wait()));
  if (waited.is_value()) all.changed.reset();
}

task<> try_all(scope& s, attempts& all, const std::vector<io::endpoint>& addresses,
               duration delay) {
  for (const io::endpoint& at : addresses) {
    ++all.running;
    s.spawn(one_attempt(all, at), {.name = "connect"});
    co_await wait_for_change(all, delay);
    if (all.won != nullptr) break;
  }
  while (all.won == nullptr && all.running > 0) {
    co_await all.changed.wait();
    all.changed.reset();
  }
  s.cancel("another address has answered first");
}

task<io::socket> connect_first(std::string host, int port, duration delay) {
  const std::string name = host + ":" + std::to_string(port);
  const std::vector<io::endpoint> addresses = co_await resolve(std::move(host), port);
  attempts all;
  if (addresses.size() == 1) {
    attempt tried = co_await try_to_connect(addresses.front());
    if (tried.error != 0) raise_system(tried.error, "connect to " + addresses.front().str());
    co_return io::socket(std::move(tried.core));
  }
  auto body = [&](scope& s) { return try_all(s, all, addresses, delay); };
  co_await with_scope({.name = "connect"}, body);
  if (all.won != nullptr) co_return io::socket(std::move(all.won));
  throw error(std::error_code(all.last_error, std::system_category()),
              "connect to " + name + ": " + all.errors);
}

// A full backlog of a Unix socket is not waited for by the kernel: there is nothing to watch.
task<io::socket> connect_path(std::string path) {
  const io::endpoint at = io::endpoint::of_path(path);
  duration pause = std::chrono::milliseconds(1);
  for (;;) {
    attempt tried = co_await try_to_connect(at);
    if (tried.error == 0) co_return io::socket(std::move(tried.core));
    if (tried.error != EAGAIN) raise_system(tried.error, "connect to " + path);
    co_await sleep(pause);
    pause = std::min<duration>(pause * 2, std::chrono::milliseconds(50));
  }
}

}  // namespace
}  // namespace detail

namespace io {

namespace {

task<socket> connect_to(std::string host, int port, duration delay) {
  detail::require_no_run("connect", host);
  detail::require_port(port, "connect");
  if (delay < duration::zero())
    detail::raise(errc::invalid_argument, "connect: attempt_delay is negative; give 0 or more");
  if (detail::require_fiber("connect").env().simulated())
    co_return co_await detail::connect_in_simulation(std::move(host), port);
  co_return co_await detail::connect_first(std::move(host), port, delay);
}

task<socket> connect_to_path(std::string path) {
  detail::require_no_run("connect_unix", path);
  if (detail::require_fiber("connect_unix").env().simulated())
    co_return co_await detail::connect_unix_in_simulation(std::move(path));
  co_return co_await detail::connect_path(std::move(path));
}

}  // namespace

task<socket> connect(std::string_view host, int port, connect_options options) {
  return connect_to(std::string(host), port, options.attempt_delay);
}

task<socket> connect_unix(std::string_view path) { return connect_to_path(std::string(path)); }

}  // namespace io
}  // namespace weir
