// SPDX-License-Identifier: MIT
//
// An Asio operation with use_weir: bytes read one by one from a socket that has them already.
#include <weir/interop/asio.hpp>
#include <weir/weir.hpp>

#include <array>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include "support/asio_bytes.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

weir::task<> read_many(boost::asio::io_context& context, std::int64_t size) {
  bench::asio_bytes bytes(context);
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    std::array<char, 1> one{};
    const bench::stopwatch watch;
    for (std::int64_t i = 0; i < size; ++i) {
      bytes.refill(i);
      sum += static_cast<std::int64_t>(
          co_await bytes.from.async_read_some(boost::asio::buffer(one), weir::use_weir));
    }
    const bench::cost cost = watch.per(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  each.report("asio_read", size);
}

}  // namespace

int main(int argc, char** argv) {
  boost::asio::io_context context(1);
  weir::run_on(context, read_many(context, bench::size_argument(argc, argv)));
}
