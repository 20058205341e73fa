// SPDX-License-Identifier: MIT
//
// A function posted to a thread_pool and its value posted back. The pool has one thread for the
// calls that are made one after the other, and 64 for those of 64 callers: a call that blocks must
// not hold up another one.
#include <boost/asio/thread_pool.hpp>

#include "peers/asio/trips.hpp"

namespace {

void travel(const char* row, int callers, std::int64_t size) {
  bench::asio::thread_pool pool(static_cast<std::size_t>(callers));
  bench::run(bench::travel(row, pool.get_executor(), callers, size));
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  travel("blocking_trip", 1, size);
  travel("blocking_64", 64, size);
}
