// SPDX-License-Identifier: MIT
// What the requests of a client share: places and kept connections.
//
// Invariants:
// 1. An origin (scheme, host, port) has `max_per_host` places, given first come, first served. A
//    request holds one from before it has a connection until its answer was read.
// 2. A new connection is made only if none is kept. So an origin has at most as many connections as
//    places, kept ones included.
// 3. A kept connection is idle: nothing was sent that is not answered, nothing received that is not
//    read. It is used again only if nothing has arrived since.
// 4. An origin exists while a request uses it or a connection of it is kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weir/detail/core/home.hpp>
#include <weir/detail/core/timer.hpp>
#include <weir/governor/counting.hpp>
#include <weir/http/client.hpp>
#include <weir/io/socket.hpp>

#include "io/http_buffer.hpp"
#include "io/http_url.hpp"

namespace weir::detail {

struct client_connection {
  explicit client_connection(io::socket made) noexcept : socket(std::move(made)) {}

  io::socket socket;
  http_buffer in;
  time_point idle_since{};
  bool kept = false;  // it has served a request before
};
using client_connection_ref = std::unique_ptr<client_connection>;

struct client_origin {
  client_origin(std::string name, std::int64_t max) : key(std::move(name)), places(max) {}

  std::string key;
  counting_governor places;
  std::vector<client_connection_ref> idle;  // the longest idle first
  std::int64_t users = 0;
};

/// A request of a client, from its start to its end. Throws errc::wrong_loop or errc::closed.
class client_use {
 public:
  explicit client_use(std::shared_ptr<client_core> core);
  client_use(client_use&&) noexcept = default;
  client_use& operator=(client_use&&) = delete;
  ~client_use();

 private:
  std::shared_ptr<client_core> core_;
};

/// Uses an origin. The place is returned first.
class origin_use {
 public:
  origin_use(client_core& core, client_origin& origin) noexcept;
  origin_use(const origin_use&) = delete;
  origin_use& operator=(const origin_use&) = delete;
  ~origin_use();
  client_origin& origin() const noexcept { return origin_; }
  std::optional<permit> place;

 private:
  client_core& core_;
  client_origin& origin_;
};

class client_core {
 public:
  explicit client_core(const http::client_options& options);
  client_core(const client_core&) = delete;
  client_core& operator=(const client_core&) = delete;
  ~client_core();

  const http::client_options& options() const noexcept { return options_; }
  const std::string& ca_file() const noexcept { return ca_file_; }
  /// The client is being destroyed.
  void close() noexcept;

  client_origin& origin_of(const http_url& url);
  /// A kept connection that is alive as far as is known; null if there is none.
  client_connection_ref take_kept(client_origin& origin) noexcept;
  void keep(client_origin& origin, client_connection_ref connection);

 private:
  friend class client_use;
  friend class origin_use;
  struct idle_watch final : deadline_node {
    explicit idle_watch(client_core& owner) noexcept : of(owner) {}
    void expired() noexcept override { of.close_idle(); }
    client_core& of;
  };

  void require_home();
  void close_idle() noexcept;
  void arm_watch() noexcept;
  void drop_if_unused(client_origin& origin) noexcept;

  http::client_options options_;  // without `ca_file`, which may not last
  std::string ca_file_;
  home home_;
  std::map<std::string, std::unique_ptr<client_origin>> origins_;
  std::unique_ptr<idle_watch> watch_;  // armed while a connection is kept
  std::int64_t pending_ = 0;
  bool closed_ = false;
};

}  // namespace weir::detail
