// SPDX-License-Identifier: MIT
//
// A function posted to the io_context of another thread and its value posted back; weir's `on` runs
// a coroutine there, which can be cancelled and has the caller's deadline.
#include <thread>

#include "peers/asio/trips.hpp"

namespace {

bench::awaitable<> travel_both(bench::executor there, std::int64_t size) {
  co_await bench::travel("on_trip", there, 1, size);
  co_await bench::travel("on_64", there, 64, size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  bench::asio::io_context other(1);
  auto work = bench::asio::make_work_guard(other);
  std::thread thread([&] { other.run(); });
  bench::run(travel_both(other.get_executor(), size));
  work.reset();
  thread.join();
}
