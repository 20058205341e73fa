// SPDX-License-Identifier: MIT
//
// A thread_pool's backlog has no limit.
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace {

namespace asio = boost::asio;

constexpr int rounds = 5;

double post_many(asio::thread_pool& pool, std::int64_t size) {
  bench::finish_line line;
  line.set(size);
  const auto start = bench::clock::now();
  for (std::int64_t i = 0; i < size; ++i) asio::post(pool, [&line] { line.cross(); });
  line.wait();
  return bench::nanoseconds_since(start) / static_cast<double>(size);
}

void measure(std::size_t workers, std::int64_t size, const char* row) {
  asio::thread_pool pool(workers);
  bench::samples each;
  post_many(pool, size);
  for (int round = 0; round < rounds; ++round) each.add(post_many(pool, size));
  bench::report(row, size, each.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  measure(1, size, "pool_1");
  measure(2, size, "pool_2");
}
