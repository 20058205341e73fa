// SPDX-License-Identifier: MIT
//
// The least that a durable log does: one thread writes records of 200 bytes and syncs. No errors
// are looked at, nothing is owned, nothing can be read again.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/latency.hpp"

namespace bench {

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

/// For a while: `at_once` things are durable `commits` times, all together, and then the next ones.
inline void commit_all(bare_log& log, std::int64_t at_once, int commits,
                       clock::duration for_so_long, run_times& times) {
  const auto until = clock::now() + for_so_long;
  const std::vector<char> batch(record_bytes * static_cast<std::size_t>(at_once), 'x');
  while (clock::now() < until) {
    const auto begun = clock::now();
    for (int i = 0; i < commits; ++i) log.commit(batch);
    const auto ended = clock::now();
    for (std::int64_t i = 0; i < at_once; ++i) times.add(begun, ended);
  }
}

}  // namespace bench
