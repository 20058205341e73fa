// SPDX-License-Identifier: MIT
// Part of <weir/io/serve.hpp>, which includes it after the declarations it needs.
#pragma once

#include <string>
#include <utility>

#include <weir/io/listener.hpp>
#include <weir/io/socket.hpp>
#include <weir/task.hpp>

namespace weir {

class shared_governor;

namespace detail {

/// A handler of connections, without its type.
class connection_handler {
 public:
  virtual task<> handle(io::socket& connection) = 0;
  /// The server accepts no more, and waits for the connections to end.
  virtual void draining() noexcept {}

 protected:
  ~connection_handler() = default;
};

template <class Handler>
class connection_handler_of final : public connection_handler {
 public:
  explicit connection_handler_of(Handler& handler) noexcept : handler_(&handler) {}
  task<> handle(io::socket& connection) override { return (*handler_)(connection); }

 private:
  Handler* handler_;
};

/// `places`, if given, replaces `options.max_connections`: servers of several loops share them.
task<> serve_connections(io::listener& l, connection_handler& handler, io::serve_options options,
                         std::string name, shared_governor* places = nullptr);

template <class Handler>
task<> serve_with(io::listener& l, Handler handler, io::serve_options options, std::string name) {
  connection_handler_of<Handler> erased(handler);
  co_await serve_connections(l, erased, options, std::move(name));
}

}  // namespace detail
}  // namespace weir
