// SPDX-License-Identifier: MIT
//
// A socket of Asio that has bytes to read at any time.
#pragma once

#include <array>
#include <cstdint>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

namespace bench {

struct asio_bytes {
  explicit asio_bytes(boost::asio::io_context& context) : to(context), from(context) {
    boost::asio::local::connect_pair(to, from);
  }
  /// Called before the i-th byte is read.
  void refill(std::int64_t i) {
    if (i % batch == 0) boost::asio::write(to, boost::asio::buffer(more));
  }
  static constexpr std::int64_t batch = 4096;
  boost::asio::local::stream_protocol::socket to;
  boost::asio::local::stream_protocol::socket from;
  std::array<char, batch> more{};
};

}  // namespace bench
