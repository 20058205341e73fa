// SPDX-License-Identifier: MIT
#pragma once

#include "toolkit/pool_core.hpp"

namespace weir::detail {

class job_wait;

/// The root of a worker's loop: takes jobs, one at a time, until the pool has no more for it. It
/// keeps the pool alive, even after a crash of the loop that owns the pool.
class pool_worker final : public served_root {
 public:
  explicit pool_worker(std::shared_ptr<pool_core> pool) noexcept
      : pool_(std::move(pool)), wake_(*this) {
    pool_->worker_added();
  }
  ~pool_worker() override { pool_->worker_gone(*this); }
  task<> run() override;

 private:
  friend class pool_core;
  friend class job_wait;
  struct wake_message final : message {
    explicit wake_message(pool_worker& w) noexcept : worker(w) {}
    void deliver(loop& here) noexcept override;
    void refuse() noexcept override {}
    pool_worker& worker;
  };

  const std::shared_ptr<pool_core> pool_;
  wake_message wake_;
  job_wait* waiting_ = nullptr;  // used on its loop only
  // Guarded by the pool's mutex.
  door_ref door_;
  std::optional<std::list<pool_worker*>::iterator> idle_;
};

/// Waits for the next job; an empty one means that no more will come.
class job_wait : public simple_wait<job_wait> {
 public:
  using args = pool_worker*;
  using result = taken_job;
  explicit job_wait(args&& worker) noexcept : worker_(*worker) {}
  ~job_wait() { worker_.waiting_ = nullptr; }
  bool try_now();
  void arm();
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  taken_job take() { return std::move(job_); }
  void woken() noexcept;

 private:
  pool_worker& worker_;
  taken_job job_;
  bool leaving_ = false;  // cancelled while its wake-up was on its way
};

}  // namespace weir::detail
