// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/io/http_handler.hpp>
#include <weir/http/request.hpp>
#include <weir/http/response.hpp>
#include <weir/task.hpp>

namespace weir::detail {
struct route_node;
}  // namespace weir::detail

namespace weir::http {

/// A handler that chooses among handlers by method and path.
///
/// A pattern is a path: `/orders/{id}` takes one segment as the param `id`, `{rest...}` at its end
/// takes all that follow. Segments are split before they are decoded, so a param may contain `/`.
/// Literals come before params, and params before tails. A path without a route: 404. A method
/// without one: 405, with `allow`; OPTIONS answers `allow`, HEAD goes to `get`. The same pattern
/// twice, and one that does not begin with `/`, repeats a name, or has a tail in the middle:
/// errc::invalid_argument.
///
/// Copies share the routes of that moment. Handlers are called as const objects are: several calls
/// may run at once.
class router {
 public:
  router();
  router(const router& other);
  router(router&&) noexcept;
  router& operator=(router other) noexcept;
  ~router();

  template <class Handler>
  router& get(std::string_view pattern, Handler handler) {
    return add("GET", pattern, std::move(handler));
  }
  template <class Handler>
  router& post(std::string_view pattern, Handler handler) {
    return add("POST", pattern, std::move(handler));
  }
  template <class Handler>
  router& put(std::string_view pattern, Handler handler) {
    return add("PUT", pattern, std::move(handler));
  }
  template <class Handler>
  router& patch(std::string_view pattern, Handler handler) {
    return add("PATCH", pattern, std::move(handler));
  }
  template <class Handler>
  router& del(std::string_view pattern, Handler handler) {
    return add("DELETE", pattern, std::move(handler));
  }

  task<response> operator()(request& r) const;

 private:
  template <class Handler>
  router& add(std::string_view method, std::string_view pattern, Handler handler) {
    static_assert(std::is_invocable_r_v<task<response>, Handler&, request&>,
                  "a handler is called with weir::http::request& and returns "
                  "weir::task<weir::http::response>");
    insert(method, pattern, std::make_shared<detail::http_handler_of<Handler>>(std::move(handler)));
    return *this;
  }
  void insert(std::string_view method, std::string_view pattern,
              std::shared_ptr<detail::http_handler> handler);

  std::unique_ptr<detail::route_node> root_;
};

}  // namespace weir::http
