// SPDX-License-Identifier: MIT
#include "peers/asio/sleepers.hpp"

namespace {

bench::awaitable<> sleep_and_weigh(std::int64_t size) {
  const auto where = co_await bench::asio::this_coro::executor;
  bench::sleepers first(where, 1);
  first.spawn();
  const std::int64_t before = bench::bytes_in_use();
  bench::sleepers all(where, size);
  all.spawn();
  const std::int64_t used = bench::bytes_in_use() - before;
  bench::report("sleeper_bytes", size, double(used) / double(size), "B");
  co_await first.cancel_and_join();
  co_await all.cancel_and_join();
}

}  // namespace

int main(int argc, char** argv) {
  bench::use_small_pages();
  bench::run(sleep_and_weigh(bench::size_argument(argc, argv)));
}
