// SPDX-License-Identifier: MIT
//
// co_spawn runs a child inline, so each child here posts itself first: then all are alive and
// queued at once, like weir's children before their first turn.
#include <boost/asio/post.hpp>

#include "peers/asio/loop.hpp"
#include "support/measure.hpp"

namespace {

[[gnu::noinline]] bench::awaitable<> child() { co_await bench::asio::post(bench::use_awaitable); }

bench::awaitable<> spawn_and_weigh(std::int64_t size) {
  const auto where = co_await bench::asio::this_coro::executor;
  bench::countdown all(where, size + 1);
  const auto arrive = [&](std::exception_ptr) { all.arrive(); };
  bench::asio::co_spawn(where, child(), arrive);
  const std::int64_t before = bench::bytes_in_use();
  for (std::int64_t i = 0; i < size; ++i) bench::asio::co_spawn(where, child(), arrive);
  const std::int64_t used = bench::bytes_in_use() - before;
  bench::report("child_bytes", size, double(used) / double(size), "B");
  co_await all.wait();
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  bench::run(spawn_and_weigh(bench::size_argument(argc, argv)));
}
