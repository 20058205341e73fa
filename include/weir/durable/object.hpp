// SPDX-License-Identifier: MIT
// The handlers of a keyed object.
#pragma once

#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/durable/handler.hpp>

namespace weir::durable {

/// A handler that reads the state of its object and does not change it; see `shared`.
template <class F>
struct shared_handler {
  F handler;
};

/// Marks a handler of an object as shared: it runs beside others of the same key, at once, and
/// sees the state that was committed last.
template <class F>
shared_handler<F> shared(F handler) {
  return {std::move(handler)};
}

/// A name and a handler, for `engine::add_object`; the handler is as for `engine::add`. Exclusive
/// unless it is marked by `shared`.
class object_handler {
 public:
  template <class F>
  object_handler(std::string_view name, F handler,
                 std::source_location site = std::source_location::current())
      : name_(name),
        code_(weir::detail::make_handler(std::move(handler), site,
                                         weir::detail::handler_kind::exclusive)) {}
  template <class F>
  object_handler(std::string_view name, shared_handler<F> handler,
                 std::source_location site = std::source_location::current())
      : name_(name),
        code_(weir::detail::make_handler(std::move(handler.handler), site,
                                         weir::detail::handler_kind::shared)) {}

  const std::string& name() const noexcept { return name_; }
  const std::shared_ptr<const weir::detail::handler_base>& code() const noexcept { return code_; }

 private:
  std::string name_;
  std::shared_ptr<const weir::detail::handler_base> code_;
};

}  // namespace weir::durable
