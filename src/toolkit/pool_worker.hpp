// SPDX-License-Identifier: MIT
#pragma once

#include "toolkit/pool_core.hpp"

namespace weir::detail {

/// The root of a worker's loop: takes jobs, one at a time, until the pool has no more for it. It
/// keeps the pool alive, even after a crash of the loop that owns the pool.
class pool_worker final : public served_root {
 public:
  pool_worker(std::shared_ptr<pool_core> pool, pool_seat& seat) noexcept;
  ~pool_worker() override { pool_->worker_gone(seat_); }
  task<> run() override;

 private:
  friend class job_wait;
  /// Calls the plain callable `job`, and those that follow it, in one region and without
  /// suspending. Afterwards `job` is one that was called and whose region has to be ended (true),
  /// or the next job, or empty.
  bool call_jobs(remote_region& r, remote_run& job) noexcept;
  const std::shared_ptr<pool_core> pool_;
  pool_seat& seat_;
};

/// Waits for the next job; an empty one means that no more will come.
class job_wait : public simple_wait<job_wait> {
 public:
  using args = pool_worker*;
  using result = remote_run;
  explicit job_wait(args&& worker) noexcept : pool_(*worker->pool_), seat_(worker->seat_) {}
  ~job_wait();
  bool try_now() noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  remote_run take() noexcept { return std::move(job_); }
  void woken() noexcept;

 private:
  void search() noexcept;
  pool_core& pool_;
  pool_seat& seat_;
  remote_run job_;
  bool leaving_ = false;  // cancelled while its wake-up was on its way
};

}  // namespace weir::detail
