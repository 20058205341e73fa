// SPDX-License-Identifier: MIT
//
// What both HTTP servers on Beast share: their stream, and the answer to a request.
#pragma once

#include <chrono>
#include <utility>

#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "peers/asio/acceptor.hpp"

namespace bench {

namespace beast = boost::beast;
namespace http = beast::http;
using stream = beast::basic_stream<tcp, executor>;
using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

constexpr auto idle_timeout = std::chrono::seconds(60);

inline response hello(const request& asked) {
  response answer(http::status::ok, asked.version());
  answer.set(http::field::content_type, "text/plain; charset=utf-8");
  answer.keep_alive(asked.keep_alive());
  answer.body() = "hello, world\n";
  answer.prepare_payload();
  return answer;
}

}  // namespace bench
