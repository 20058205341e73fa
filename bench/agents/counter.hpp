// SPDX-License-Identifier: MIT
//
// The agent that is called and cast to: a number.
#pragma once

#include <cstdint>

namespace bench {

class counter {
 public:
  explicit counter(std::int64_t start = 0) : count_(start) {}
  void add(std::int64_t n) { count_ += n; }
  std::int64_t plus(std::int64_t n) const { return count_ + n; }
  std::int64_t take() {
    const std::int64_t all = count_;
    count_ = 0;
    return all;
  }

 private:
  std::int64_t count_;
};

}  // namespace bench
