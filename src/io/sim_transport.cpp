// SPDX-License-Identifier: MIT
#include "io/sim_transport.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>

#include "core/loop.hpp"
#include "io/sim_acceptor.hpp"
#include "io/sim_datagrams.hpp"
#include "io/sim_stream.hpp"
#include "io/system.hpp"
#include "sim/network.hpp"

namespace weir::detail {

namespace {

constexpr std::string_view loopback = "127.0.0.1";

/// Waits until a connect has succeeded or failed.
class sim_connect_wait : public io_operation<sim_connect_wait> {
 public:
  struct args {
    sim_stream* core;
  };
  using result = void;

  explicit sim_connect_wait(args&& a) noexcept
      : io_operation(a.core, io_side::write, "connect"), core_(a.core) {}
  bool try_now() noexcept { return !may_try() || core_->settled(); }
  void take() { rethrow(); }

 private:
  sim_stream* core_;
};

task<io::socket> reach_address(loop& here, network_address to, std::string text) {
  network_state& net = network_of(here);
  std::shared_ptr<network_link> link = net.connect(here, to);
  network_end& end = link->client;
  auto core = std::make_unique<sim_stream>(std::move(link), end);
  co_await pending<sim_connect_wait>({core.get()});
  int error = core->error();
  if (error == ECONNREFUSED && !to.path.empty() && !net.stale(to.path)) error = ENOENT;
  if (error != 0) raise_system(error, "connect to " + text);
  co_return io::socket(std::move(core));
}

}  // namespace

io::listener listen_in_simulation(const std::string& address, int port, int backlog) {
  loop& here = *loop::here();
  (void)io::endpoint(address, port);  // refuses what is no number
  network_address at;
  at.port = port;
  auto made = network_of(here).listen(here, std::move(at), static_cast<std::size_t>(backlog));
  if (made == nullptr)
    raise_system(EADDRINUSE, "listen on " + here.own_door().name() + ":" + std::to_string(port));
  return io::listener(std::make_unique<sim_acceptor>(std::move(made)));
}

task<io::socket> connect_in_simulation(std::string host, int port) {
  loop& here = *loop::here();
  network_address to;
  to.host = host == loopback ? here.own_door().name() : host;
  to.port = port;
  if (!network_of(here).has_host(to.host))
    raise(errc::host_not_found, "connect to '" + host +
                                    "': no such host in this simulation; "
                                    "hosts are the names of its loops, and 'main'");
  co_return co_await reach_address(here, std::move(to), host + ":" + std::to_string(port));
}

io::udp bind_in_simulation(const std::string& address, int port) {
  loop& here = *loop::here();
  (void)io::endpoint(address, port);  // refuses what is no number
  auto made = network_of(here).bind(here, port);
  if (made == nullptr)
    raise_system(EADDRINUSE, "udp::bind to " + here.own_door().name() + ":" + std::to_string(port));
  return io::udp(std::make_unique<sim_datagrams>(std::move(made)));
}

io::listener listen_unix_in_simulation(const std::string& path) {
  loop& here = *loop::here();
  (void)io::endpoint::of_path(path);  // refuses what is no path
  network_address at;
  at.path = path;
  constexpr std::size_t backlog = 1024;
  auto made = network_of(here).listen(here, std::move(at), backlog);
  if (made == nullptr) raise_system(EADDRINUSE, "listen on '" + path + "'");
  return io::listener(std::make_unique<sim_acceptor>(std::move(made)));
}

task<io::socket> connect_unix_in_simulation(std::string path) {
  loop& here = *loop::here();
  (void)io::endpoint::of_path(path);
  network_address to;
  to.path = path;
  co_return co_await reach_address(here, std::move(to), "'" + path + "'");
}

}  // namespace weir::detail
