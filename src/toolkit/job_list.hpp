// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>

#include <weir/detail/toolkit/remote.hpp>

namespace weir::detail {

/// Jobs of a pool, first in, first out, linked through the jobs themselves. It owns nothing. Not
/// synchronised.
class job_list {
 public:
  job_list() noexcept = default;
  job_list(job_list&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)),
        last_(std::exchange(other.last_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  job_list& operator=(job_list&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    std::swap(size_, other.size_);
    return *this;
  }

  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  remote_op* first() const noexcept { return first_; }

  void push_back(remote_op& job) noexcept {
    job.previous = std::exchange(last_, &job);
    job.following = nullptr;
    (job.previous == nullptr ? first_ : job.previous->following) = &job;
    ++size_;
  }
  remote_op& pop_front() noexcept {
    remote_op& job = *first_;
    take(job);
    return job;
  }
  /// REQUIRES: it is in this list.
  void take(remote_op& job) noexcept {
    (job.previous == nullptr ? first_ : job.previous->following) = job.following;
    (job.following == nullptr ? last_ : job.following->previous) = job.previous;
    --size_;
  }

 private:
  remote_op* first_ = nullptr;
  remote_op* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weir::detail
