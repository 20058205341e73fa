// SPDX-License-Identifier: MIT
// One listening socket for each loop of a runtime, all at one port: the system spreads connections
// over them, and each is served by the loop that accepted it.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/io/loop_service.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/io/listener.hpp>
#include <weir/io/serve.hpp>
#include <weir/loop_thread.hpp>
#include <weir/task.hpp>

namespace weir::detail {

class listeners_core;

}  // namespace weir::detail

namespace weir::io {

/// The listening sockets of a runtime's loops. Destroying it closes them. Threads: home loop only,
/// which need not be one of the runtime's.
class listeners {
 public:
  listeners() noexcept;
  listeners(listeners&& other) noexcept;
  listeners& operator=(listeners&& other) noexcept;
  ~listeners();

  int port() const noexcept { return local().port(); }
  endpoint local() const noexcept;
  /// The number of loops; 0 once it is closed.
  std::size_t size() const noexcept;
  /// Refuses further connections; ends a `serve`, which drains.
  void close() noexcept;

  // Below: for the library.
  explicit listeners(std::shared_ptr<detail::listeners_core> core) noexcept;
  const std::shared_ptr<detail::listeners_core>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<detail::listeners_core> core_;
};

/// Listens once per loop of the runtime, with SO_REUSEPORT; port 0 picks one for all. Errors are
/// those of listen(listen_options). In a simulation each loop is reached by its own name. `.tls`:
/// errc::invalid_argument.
task<listeners> listen(runtime& on, listen_options options = {});

/// As serve(listener&, ...), on all loops of the runtime, until it is cancelled or `l` is closed.
/// Each loop has a copy of the handler, made here and destroyed there, so that handlers share what
/// they refer to. `max_connections` is for all loops together. A loop that has ended:
/// errc::loop_gone.
template <class Handler>
  requires(std::is_invocable_r_v<task<>, Handler&, socket&> && std::copy_constructible<Handler>)
task<> serve(listeners& l, Handler handler, serve_options options = {}) {
  const std::string name(options.name.empty() ? "serve" : options.name.view());
  options.name = {};
  std::vector<std::unique_ptr<detail::loop_service>> services;
  for (std::size_t i = 0; i < l.size(); ++i)
    services.push_back(
        std::make_unique<detail::connections_on_loop<Handler>>(handler, options, name));
  return detail::serve_on_loops(l.core(), std::move(services), options.max_connections, name);
}

}  // namespace weir::io
