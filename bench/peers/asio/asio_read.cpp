// SPDX-License-Identifier: MIT
//
// The same reads with a callback: a handler that starts the next one.
#include <array>

#include "support/asio_bytes.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 7;

class reader {
 public:
  reader(boost::asio::io_context& context, std::int64_t size) : bytes_(context), size_(size) {}
  void start() {
    left_ = size_;
    next();
  }
  std::int64_t sum = 0;

 private:
  void next() {
    if (left_ == 0) return;
    bytes_.refill(size_ - left_--);
    bytes_.from.async_read_some(boost::asio::buffer(one_),
                                [this](boost::system::error_code error, std::size_t n) {
                                  if (error) return;
                                  sum += static_cast<std::int64_t>(n);
                                  next();
                                });
  }
  bench::asio_bytes bytes_;
  std::int64_t size_;
  std::int64_t left_ = 0;
  std::array<char, 1> one_{};
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  boost::asio::io_context context(1);
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    reader all(context, size);
    const bench::stopwatch watch;
    all.start();
    context.run();
    const bench::cost cost = watch.per(size);
    context.restart();
    bench::keep(all.sum);
    if (round > 0) each.add(cost);
  }
  each.report("asio_read", size);
}
