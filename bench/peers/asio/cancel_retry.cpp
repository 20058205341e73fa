// SPDX-License-Identifier: MIT
//
// A loop of attempts asleep on its timer, stopped in the cheapest way Asio has: the timer is
// cancelled directly and the error is returned in a tuple, so that nothing is thrown.
#include "peers/asio/sleepers.hpp"

namespace {

constexpr int repetitions = 1000;
constexpr int attempts = 2;

bool succeeds() { return false; }

bench::awaitable<> retry(bench::timer& pause) {
  for (int attempt = 1; attempt <= attempts && !succeeds(); ++attempt) {
    pause.expires_after(std::chrono::seconds(5));
    const auto [error] = co_await pause.async_wait(bench::asio::as_tuple(bench::use_awaitable));
    if (error) co_return;
  }
}

bench::awaitable<double> cancel_one(bench::executor where) {
  bench::countdown joined(where, 1);
  bench::timer pause(where);
  // co_spawn starts a coroutine inline, so it is asleep when this returns.
  bench::asio::co_spawn(where, retry(pause), [&](std::exception_ptr) { joined.arrive(); });
  const auto asked = bench::clock::now();
  pause.cancel();
  co_await joined.wait();
  co_return bench::nanoseconds_since(asked);
}

bench::awaitable<> cancel_many(std::int64_t size) {
  const auto where = co_await bench::asio::this_coro::executor;
  bench::sleepers others(where, size);
  others.spawn();
  bench::samples each;
  for (int i = 0; i < 2 * repetitions; ++i) {
    const double took = co_await cancel_one(where);
    if (i >= repetitions) each.add(took);  // the first half is a warm-up
  }
  bench::report("cancel_retry", size, each.median(), "ns");
  co_await others.cancel_and_join();
}

}  // namespace

int main(int argc, char** argv) { bench::run(cancel_many(bench::size_argument(argc, argv))); }
