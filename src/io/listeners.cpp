// SPDX-License-Identifier: MIT
#include <weir/io/listeners.hpp>

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/socket.h>

#include <weir/combinators.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/governor/shared.hpp>
#include <weir/io/tls.hpp>
#include <weir/on.hpp>
#include <weir/scope.hpp>

#include "core/loop.hpp"
#include "io/descriptor_acceptor.hpp"
#include "io/listeners_core.hpp"
#include "io/open_socket.hpp"
#include "io/sim_transport.hpp"

namespace weir {

namespace detail {

void listeners_core::close() noexcept {
  if (std::exchange(closed, true)) return;
  for (place& p : places) {
    // The duplicates do not listen any more either; their loops close them when they see it.
    if (p.descriptor) ::shutdown(p.descriptor.get(), SHUT_RDWR);
    p.descriptor.reset();
    const std::shared_ptr<acceptor_core> simulated = p.simulated.core();
    if (simulated != nullptr) p.at.post([simulated] { simulated->close(); });
  }
  if (serving > 0) stop.set();
}

namespace {

/// What one loop serves; made and ended on the caller's loop, used on that loop in between.
struct share {
  loop_ref at;
  owned_descriptor descriptor;
  io::listener* simulated = nullptr;
  std::unique_ptr<loop_service> service;
  std::shared_ptr<tls_server> tls;
};

task<> serve_share(share& mine, shared_governor& places) {
  const std::unique_ptr<loop_service> service = std::move(mine.service);
  if (mine.simulated != nullptr) {
    co_await service->serve(*mine.simulated, places);
    co_return;
  }
  io::listener own(std::make_unique<descriptor_acceptor>(std::move(mine.descriptor), std::string(),
                                                         std::move(mine.tls)));
  co_await service->serve(own, places);
}

std::vector<share> shares_of(listeners_core& all,
                             std::vector<std::unique_ptr<loop_service>>& services) {
  std::vector<share> made;
  for (std::size_t i = 0; i < all.places.size(); ++i) {
    listeners_core::place& p = all.places[i];
    share one{p.at, {}, nullptr, std::move(services[i]), all.tls};
    if (p.descriptor) {
      one.descriptor.reset(::fcntl(p.descriptor.get(), F_DUPFD_CLOEXEC, 0));
      if (!one.descriptor) raise_system(errno, "serve: listeners " + all.local.str());
    } else {
      one.simulated = &p.simulated;
    }
    made.push_back(std::move(one));
  }
  return made;
}

class serving_mark {
 public:
  explicit serving_mark(listeners_core& of) noexcept : of_(of) { of_.serving += 1; }
  serving_mark(const serving_mark&) = delete;
  serving_mark& operator=(const serving_mark&) = delete;
  ~serving_mark() { of_.serving -= 1; }

 private:
  listeners_core& of_;
};

task<> run_shares(scope& s, listeners_core& all, std::vector<share>& shares,
                  shared_governor& places) {
  for (share& one : shares) {
    auto op = [&one, &places] { return serve_share(one, places); };
    s.spawn_on(one.at, op, {.name = "loop"});
  }
  co_await race(s.idle(), all.stop.wait());
  s.cancel("the listeners were closed");  // those that are left drain
}

}  // namespace

task<> serve_on_loops(std::shared_ptr<listeners_core> on,
                      std::vector<std::unique_ptr<loop_service>> services,
                      std::int64_t max_connections, std::string name) {
  require_no_run("serve", name);
  if (max_connections < 1)
    raise(errc::invalid_argument, "serve: max_connections is " + std::to_string(max_connections) +
                                      "; give 1 or more, or unbounded");
  if (on == nullptr || on->closed) co_return;
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  shared_governor places(std::min(max_connections, most), {.name = name});
  std::vector<share> shares = shares_of(*on, services);
  const serving_mark mark(*on);
  auto body = [&](scope& s) { return run_shares(s, *on, shares, places); };
  co_await with_scope({.name = name, .grace = duration::max()}, body);
}

}  // namespace detail

namespace io {

listeners::listeners() noexcept = default;
listeners::listeners(listeners&& other) noexcept = default;
listeners::listeners(std::shared_ptr<detail::listeners_core> core) noexcept
    : core_(std::move(core)) {}

listeners& listeners::operator=(listeners&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

listeners::~listeners() { close(); }

endpoint listeners::local() const noexcept { return core_ == nullptr ? endpoint() : core_->local; }
std::size_t listeners::size() const noexcept {
  return core_ == nullptr || core_->closed ? 0 : core_->places.size();
}
void listeners::close() noexcept {
  if (core_ != nullptr) core_->close();
}

namespace {

task<listener> listen_here(const std::string& address, int port, int backlog) {
  co_return detail::listen_in_simulation(address, port, backlog);
}

task<listeners> listen_on_loops(std::vector<loop_ref> loops, std::string address, int port,
                                int backlog, std::shared_ptr<detail::tls_server> tls) {
  detail::require_no_run("listen", address);
  detail::require_port(port, "listen");
  detail::require_backlog(backlog);
  const bool simulated = detail::require_fiber("listen").env().simulated();
  if (simulated && tls != nullptr)
    detail::raise(errc::invalid_argument, "listen: a simulated network has no TLS; leave .tls out");
  const auto made = std::make_shared<detail::listeners_core>();
  made->tls = std::move(tls);
  for (const loop_ref at : loops) {
    detail::listeners_core::place p{at};
    if (simulated) {
      auto op = [&] { return listen_here(address, port, backlog); };
      p.simulated = co_await on(at, op);
      port = p.simulated.port();
    } else {
      p.descriptor = detail::open_listening(endpoint(address, port), backlog, true);
      port = detail::local_of(p.descriptor.get()).port();
    }
    made->places.push_back(std::move(p));
  }
  detail::listeners_core::place& first = made->places.front();
  made->local = simulated ? first.simulated.local() : detail::local_of(first.descriptor.get());
  co_return listeners(made);
}

}  // namespace

task<listeners> listen(runtime& on, listen_options options) {
  std::vector<loop_ref> loops;
  loops.reserve(on.size());
  for (std::size_t i = 0; i < on.size(); ++i) loops.push_back(on.at(i));
  return listen_on_loops(std::move(loops), std::string(options.address), options.port,
                         options.backlog, options.tls == nullptr ? nullptr : options.tls->core());
}

}  // namespace io
}  // namespace weir
