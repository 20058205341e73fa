// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <weir/http/request.hpp>
#include <weir/http/response.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// A handler of requests, without its type.
class http_handler {
 public:
  http_handler() = default;
  http_handler(const http_handler&) = delete;
  http_handler& operator=(const http_handler&) = delete;
  virtual ~http_handler() = default;
  virtual task<http::response> handle(http::request& r) = 0;
};

template <class Handler>
class http_handler_of final : public http_handler {
 public:
  explicit http_handler_of(Handler&& handler) : handler_(std::move(handler)) {}
  task<http::response> handle(http::request& r) override { return handler_(r); }

 private:
  Handler handler_;
};

}  // namespace weir::detail
