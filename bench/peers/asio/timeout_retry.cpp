// SPDX-License-Identifier: MIT
//
// The group of timeout_ready.cpp inside a loop of attempts, as one writes it by hand: Asio has no
// retry. An attempt has failed if it threw or if the timer was first.
#include <optional>
#include <stdexcept>
#include <variant>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

using namespace boost::asio::experimental::awaitable_operators;

constexpr int rounds = 3;
constexpr int attempts = 3;

[[gnu::noinline]] bench::awaitable<std::int64_t> ready(std::int64_t value) { co_return value; }

// As a tuple, so that the cancelled timer does not throw.
auto expired(bench::timer& guard) {
  return guard.async_wait(bench::asio::as_tuple(bench::use_awaitable));
}

bench::awaitable<std::int64_t> with_timeout(bench::timer& guard, std::int64_t value) {
  guard.expires_after(std::chrono::hours(1));
  const auto first = co_await (ready(value) || expired(guard));
  if (first.index() != 0) throw std::runtime_error("timed out");
  co_return std::get<0>(first);
}

bench::awaitable<std::int64_t> with_retry(bench::timer& guard, std::int64_t value) {
  for (int attempt = 1;; ++attempt) {
    std::optional<std::int64_t> result;
    try {
      result = co_await with_timeout(guard, value);
    } catch (...) {
      if (attempt == attempts) throw;
    }
    if (result) co_return *result;
    guard.expires_after(std::chrono::milliseconds(100) * (1 << (attempt - 1)));
    co_await guard.async_wait(bench::use_awaitable);
  }
}

bench::awaitable<> guard_many(std::int64_t size) {
  bench::timer guard(co_await bench::asio::this_coro::executor);
  bench::costs each;
  for (int round = 0; round <= rounds; ++round) {
    std::int64_t sum = 0;
    const bench::stopwatch watch;
    for (std::int64_t i = 0; i < size; ++i) sum += co_await with_retry(guard, i);
    const bench::cost cost = watch.per(size);
    bench::keep(sum);
    if (round > 0) each.add(cost);
  }
  each.report("timeout_retry", size);
}

}  // namespace

int main(int argc, char** argv) { bench::run(guard_many(bench::size_argument(argc, argv))); }
