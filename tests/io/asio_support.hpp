// SPDX-License-Identifier: MIT
// What the tests of weir inside Asio share.
#pragma once

#include <weir/interop/asio.hpp>
#include <weir/io.hpp>
#include <weir/weir.hpp>

#include <boost/asio.hpp>

#include "io/io_support.hpp"

namespace weir_test {

namespace asio = boost::asio;

/// Two sockets of Asio, connected.
struct asio_pair {
  explicit asio_pair(asio::io_context& context) : a(context), b(context) {
    asio::local::connect_pair(a, b);
  }
  asio::local::stream_protocol::socket a;
  asio::local::stream_protocol::socket b;
};

/// Sets a flag when it is destroyed.
class flag_at_end {
 public:
  explicit flag_at_end(bool& flag) : flag_(flag) {}
  flag_at_end(const flag_at_end&) = delete;
  flag_at_end& operator=(const flag_at_end&) = delete;
  ~flag_at_end() { flag_ = true; }

 private:
  bool& flag_;
};

}  // namespace weir_test
