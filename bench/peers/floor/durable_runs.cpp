// SPDX-License-Identifier: MIT
//
// The least that eleven commits per run take: one thread writes a record of 200 bytes of every run
// and syncs, and then all runs go on. No errors are looked at, nothing is owned, nothing can be
// read again.
#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "support/latency.hpp"
#include "support/scratch.hpp"

namespace {

constexpr std::size_t record_bytes = 200;
constexpr std::int64_t file_bytes = std::int64_t{64} << 20;

class bare_log {
 public:
  explicit bare_log(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    const std::vector<char> zeros(std::size_t{1} << 20);
    const auto at_once = static_cast<std::int64_t>(zeros.size());
    for (std::int64_t at = 0; at < file_bytes; at += at_once) write_at(zeros, at);
    fdatasync(fd_);
  }
  bare_log(const bare_log&) = delete;
  bare_log& operator=(const bare_log&) = delete;
  ~bare_log() { close(fd_); }

  void commit(const std::vector<char>& batch) {
    const auto n = static_cast<std::int64_t>(batch.size());
    if (at_ + n > file_bytes) at_ = 0;
    write_at(batch, at_);
    at_ += n;
    fdatasync(fd_);
    ++syncs;
  }

  std::int64_t syncs = 0;

 private:
  void write_at(const std::vector<char>& bytes, std::int64_t at) const {
    if (pwrite(fd_, bytes.data(), bytes.size(), at) != static_cast<ssize_t>(bytes.size()))
      std::exit(3);
  }
  int fd_;
  std::int64_t at_ = 0;
};

void run_all(bare_log& log, std::int64_t size, bench::clock::duration for_so_long,
             bench::run_times& times) {
  const auto until = bench::clock::now() + for_so_long;
  std::vector<char> batch(record_bytes * static_cast<std::size_t>(size), 'x');
  while (bench::clock::now() < until) {
    const auto begun = bench::clock::now();
    for (int i = 0; i < bench::commits_per_run; ++i) log.commit(batch);
    const auto ended = bench::clock::now();
    for (std::int64_t i = 0; i < size; ++i) times.add(begun, ended);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  const bench::scratch here(argv[0]);
  bare_log log(here.path("log"));
  bench::run_times times;
  run_all(log, size, bench::warm_up, times);
  times.clear();
  log.syncs = 0;
  const auto start = bench::clock::now();
  run_all(log, size, bench::run_for, times);
  times.report_all(size, bench::nanoseconds_since(start) / 1000, static_cast<double>(log.syncs));
}
