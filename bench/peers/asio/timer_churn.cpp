// SPDX-License-Identifier: MIT
//
// Plain callbacks, no coroutine: arm a timer, cancel it, and arm it again from its handler, while
// `size` others are pending. This is the least Asio can do for a timeout that did not fire.
#include <deque>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

class churn {
 public:
  explicit churn(std::int64_t size) : size_(size), context_(1), guard_(context_.get_executor()) {
    for (std::int64_t i = 0; i < size; ++i) {
      pending_.emplace_back(context_.get_executor(), bench::far_away(i));
      pending_.back().async_wait([](boost::system::error_code) {});
    }
  }

  double run_round() {
    left_ = size_;
    const auto start = bench::clock::now();
    arm_and_cancel();
    context_.run();  // until the last handler stops it: the others stay pending
    context_.restart();
    return bench::nanoseconds_since(start) / static_cast<double>(size_);
  }

 private:
  void arm_and_cancel() {
    guard_.expires_after(std::chrono::hours(1));
    guard_.async_wait([this](boost::system::error_code) {
      if (--left_ > 0) {
        arm_and_cancel();
      } else {
        context_.stop();
      }
    });
    guard_.cancel();
  }

  std::int64_t size_;
  std::int64_t left_ = 0;
  bench::asio::io_context context_;
  std::deque<bench::timer> pending_;
  bench::timer guard_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  churn timers(size);
  timers.run_round();
  bench::samples each;
  for (int round = 0; round < rounds; ++round) each.add(timers.run_round());
  bench::report("timer_churn", size, each.median(), "ns");
}
