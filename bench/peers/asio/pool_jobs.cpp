// SPDX-License-Identifier: MIT
//
// Jobs behind a bounded backlog, the same without a limit, and with results: each is posted back to
// the io_context of this thread, which has 1024 on their way at any time.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "peers/asio/bounded_pool.hpp"
#include "support/finish_line.hpp"
#include "support/measure.hpp"

namespace {

namespace asio = boost::asio;

constexpr int rounds = 5;

template <typename Submit>
bench::cost submit_many(std::int64_t size, Submit submit) {
  bench::finish_line line;
  line.set(size);
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < size; ++i) submit([&line] { line.cross(); });
  line.wait();
  return watch.per(size);
}

// Callbacks, because they cost less than coroutines.
class callers {
 public:
  callers(asio::thread_pool& pool, asio::io_context& here, std::int64_t size)
      : pool_(pool), here_(here), size_(size) {}

  bench::cost run() {
    const bench::stopwatch watch;
    for (std::int64_t i = 0; i < 1024 && next_ < size_; ++i) call();
    while (done_ < size_) here_.run_one();
    const bench::cost cost = watch.per(size_);
    if (sum_ != size_ * (size_ + 1) / 2) std::abort();
    return cost;
  }

 private:
  void call() {
    asio::post(pool_, [this, value = next_++] {
      asio::post(here_, [this, result = value + 1] {
        sum_ += result;
        ++done_;
        if (next_ < size_) call();
      });
    });
  }

  asio::thread_pool& pool_;
  asio::io_context& here_;
  const std::int64_t size_;
  std::int64_t next_ = 0;
  std::int64_t done_ = 0;
  std::int64_t sum_ = 0;
};

template <typename Round>
void repeat(const char* row, std::int64_t size, Round round) {
  bench::costs each;
  round();
  for (int i = 0; i < rounds; ++i) each.add(round());
  each.report(row, size);
}

void fire(const char* row, std::size_t workers, std::int64_t size) {
  bench::bounded_pool pool(workers);
  repeat(row, size,
         [&] { return submit_many(size, [&](auto job) { pool.submit(std::move(job)); }); });
}

void fire_unbounded(const char* row, std::size_t workers, std::int64_t size) {
  asio::thread_pool pool(workers);
  repeat(row, size,
         [&] { return submit_many(size, [&](auto job) { asio::post(pool, std::move(job)); }); });
}

void results(const char* row, std::size_t workers, std::int64_t size) {
  asio::thread_pool pool(workers);
  asio::io_context here(1);
  const auto work = asio::make_work_guard(here);  // it must not stop between the rounds
  repeat(row, size, [&] { return callers(pool, here, size).run(); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  fire("pool_1", 1, size);
  fire("pool_2", 2, size);
  fire_unbounded("unbounded_1", 1, size);
  fire_unbounded("unbounded_2", 2, size);
  results("result_1", 1, size);
  results("result_2", 2, size);
}
