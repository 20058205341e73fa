// SPDX-License-Identifier: MIT
// What the connections of one http::serve share. Home loop only.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <weir/http/serve.hpp>
#include <weir/io/serve.hpp>

#include "io/http_exchange.hpp"

namespace weir::detail {

class http_connection;
class http_server;

/// A connection that has left HTTP for another protocol.
class upgraded_connection {
 public:
  upgraded_connection() = default;
  upgraded_connection(const upgraded_connection&) = delete;
  upgraded_connection& operator=(const upgraded_connection&) = delete;
  /// The server drains.
  virtual void drain() noexcept = 0;

 protected:
  ~upgraded_connection() = default;
};

/// What an answer with status 101 leads to.
class response_upgrade {
 public:
  response_upgrade() = default;
  response_upgrade(const response_upgrade&) = delete;
  response_upgrade& operator=(const response_upgrade&) = delete;
  virtual ~response_upgrade() = default;
  /// Runs the other protocol until it has ended. `in`: what was received behind the request.
  virtual task<> run(http_server& server, io::socket socket, http_buffer in) = 0;
};

class http_server final : public connection_handler {
 public:
  http_server(std::unique_ptr<http_handler> handler, const http::http_options& options)
      : options_(options), handler_(std::move(handler)) {
    unused_.reserve(max_kept);
  }

  task<> handle(io::socket& connection) override;
  /// Closes the connections that wait for a request.
  void draining() noexcept override;

  bool is_draining() const noexcept { return draining_; }
  const http::http_options& options() const noexcept { return options_; }
  http_handler& handler() noexcept { return *handler_; }

  /// While it exists, `connection` is told of the drain.
  class upgrade_watch {
   public:
    upgrade_watch(http_server& server, upgraded_connection& connection);
    upgrade_watch(const upgrade_watch&) = delete;
    upgrade_watch& operator=(const upgrade_watch&) = delete;
    ~upgrade_watch() { server_.upgraded_.erase(&connection_); }

   private:
    http_server& server_;
    upgraded_connection& connection_;
  };

  /// An exchange with empty buffers, which are warm if one was returned before.
  std::unique_ptr<http_exchange> borrow();
  void give_back(std::unique_ptr<http_exchange> used) noexcept;

 private:
  friend class http_connection;
  /// How many unused exchanges are kept, and how large their buffers may be.
  static constexpr std::size_t max_kept = 64;
  static constexpr std::size_t max_kept_bytes = 64 * 1024;

  http::http_options options_;
  std::unique_ptr<http_handler> handler_;
  std::vector<std::unique_ptr<http_exchange>> unused_;
  http_connection* idle_ = nullptr;  // those that wait for a request
  std::unordered_set<upgraded_connection*> upgraded_;
  bool draining_ = false;
};

}  // namespace weir::detail
