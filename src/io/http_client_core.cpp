// SPDX-License-Identifier: MIT
#include "io/http_client_core.hpp"

#include <string>

#include "core/door.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

namespace {

void require_option(bool good, const char* text) {
  if (!good) raise(errc::invalid_argument, std::string("http::client: ") + text);
}

/// Whether something has arrived on an idle connection: its end, or bytes that were not asked for.
bool has_become_readable(io::socket& socket) noexcept {
  return socket.core() == nullptr || socket.core()->has_arrived();
}

}  // namespace

client_core::client_core(const http::client_options& options)
    : options_(options), ca_file_(options.ca_file) {
  require_option(options.max_per_host >= 1 && options.max_per_host < (std::int64_t{1} << 32),
                 "max_per_host is below 1 or above 2^32 - 1");
  require_option(options.timeout > duration::zero(), "timeout is not positive");
  require_option(options.max_body >= 0, "max_body is negative");
  require_option(options.max_redirects >= 0, "max_redirects is negative");
  require_option(options.idle_timeout >= duration::zero(), "idle_timeout is negative");
  require_option(options.redirects == http::redirects::same_host ||
                     options.redirects == http::redirects::none ||
                     options.redirects == http::redirects::any,
                 "redirects is not same_host, none or any");
  options_.ca_file = {};
}

// Outside of its loop the timer must not be touched: if that loop has ended, it is not armed.
client_core::~client_core() {
  if (watch_ == nullptr || !watch_->armed()) return;
  if (home_.is_here()) {
    loop::here()->cancel_deadline(*watch_);
  } else if (door_table::find_serial(home_.serial()) != nullptr) {
    fatal("http::client destroyed outside of its loop, which still runs");
  }
}

void client_core::close() noexcept {
  if (pending_ > 0) {
    fatal("http::client destroyed while " + std::to_string(pending_) +
          (pending_ == 1 ? " request is" : " requests are") + " pending");
  }
  closed_ = true;
  origins_.clear();
}

void client_core::require_home() {
  if (home_.is_here()) [[likely]]
    return;
  home_.settle({"http::client", {}}, "make a client on each loop; one is not used", true);
  watch_.reset();  // of a loop that has ended, with its timers
  for (const auto& [key, origin] : origins_) origin->idle.clear();
}

client_origin& client_core::origin_of(const http_url& url) {
  std::string key = url.origin();
  auto& place = origins_[key];
  if (place == nullptr)
    place = std::make_unique<client_origin>(std::move(key), options_.max_per_host);
  return *place;
}

client_connection_ref client_core::take_kept(client_origin& origin) noexcept {
  while (!origin.idle.empty()) {
    client_connection_ref last = std::move(origin.idle.back());
    origin.idle.pop_back();
    if (!has_become_readable(last->socket)) return last;
  }
  return nullptr;
}

void client_core::keep(client_origin& origin, client_connection_ref connection) {
  if (closed_ || options_.idle_timeout == duration::zero()) return;
  connection->kept = true;
  connection->idle_since = loop::here()->now();
  origin.idle.push_back(std::move(connection));
  if (watch_ == nullptr) watch_ = std::make_unique<idle_watch>(*this);
  if (!watch_->armed()) arm_watch();
}

void client_core::arm_watch() noexcept {
  std::optional<time_point> oldest;
  for (const auto& [key, origin] : origins_)
    if (!origin->idle.empty() && (!oldest || origin->idle.front()->idle_since < *oldest))
      oldest = origin->idle.front()->idle_since;
  if (!oldest) return;
  const bool never = time_point::max() - *oldest <= options_.idle_timeout;
  if (!never) loop::here()->arm_watch(*watch_, *oldest + options_.idle_timeout);
}

void client_core::close_idle() noexcept {
  const time_point time = loop::here()->now();
  for (auto at = origins_.begin(); at != origins_.end();) {
    client_origin& origin = *(at++)->second;
    auto& idle = origin.idle;
    while (!idle.empty() && time - idle.front()->idle_since >= options_.idle_timeout)
      idle.erase(idle.begin());
    drop_if_unused(origin);
  }
  arm_watch();
}

void client_core::drop_if_unused(client_origin& origin) noexcept {
  if (origin.users == 0 && origin.idle.empty()) origins_.erase(origins_.find(origin.key));
}

client_use::client_use(std::shared_ptr<client_core> core) : core_(std::move(core)) {
  if (core_->closed_) raise(errc::closed, "a request of an http::client that was destroyed");
  core_->require_home();
  ++core_->pending_;
}

client_use::~client_use() {
  if (core_ != nullptr) --core_->pending_;
}

origin_use::origin_use(client_core& core, client_origin& origin) noexcept
    : core_(core), origin_(origin) {
  ++origin.users;
}

origin_use::~origin_use() {
  place.reset();
  --origin_.users;
  core_.drop_if_unused(origin_);
}

}  // namespace weir::detail
