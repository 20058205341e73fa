// SPDX-License-Identifier: MIT
// What io::serve and http::serve run on each loop of a runtime.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weir/io/serve.hpp>
#include <weir/task.hpp>

namespace weir {

class shared_governor;

namespace detail {

class listeners_core;

class loop_service {
 public:
  loop_service() = default;
  loop_service(const loop_service&) = delete;
  loop_service& operator=(const loop_service&) = delete;
  virtual ~loop_service() = default;
  /// Serves the listener of this loop; a connection takes one of `places`.
  virtual task<> serve(io::listener& l, shared_governor& places) = 0;
};

template <class Handler>
class connections_on_loop final : public loop_service {
 public:
  connections_on_loop(const Handler& handler, const io::serve_options& options, std::string name)
      : handler_(handler), options_(options), name_(std::move(name)) {}
  task<> serve(io::listener& l, shared_governor& places) override {
    return serve_connections(l, erased_, options_, name_, &places);
  }

 private:
  Handler handler_;
  connection_handler_of<Handler> erased_{handler_};
  io::serve_options options_;
  std::string name_;
};

/// Runs one service on each loop of `on`, which may be null or closed: then it returns at once.
task<> serve_on_loops(std::shared_ptr<listeners_core> on,
                      std::vector<std::unique_ptr<loop_service>> services,
                      std::int64_t max_connections, std::string name);

}  // namespace detail
}  // namespace weir
