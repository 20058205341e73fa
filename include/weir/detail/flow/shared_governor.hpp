// SPDX-License-Identifier: MIT
// The machinery of <weir/governor/shared.hpp>.
#pragma once

#include <cstdint>

#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/policy/deadline.hpp>

namespace weir {

class shared_governor;

namespace detail {

class shared_queue;
class shared_request;

/// Waits for permits of a shared governor. While parked, it is represented by a request, which
/// outlives the wait if a grant is in flight when it leaves.
class shared_wait : public simple_wait<shared_wait> {
 public:
  struct args {
    shared_governor* of;
    std::int64_t weight;
  };
  using result = permit;

  explicit shared_wait(args&& a) noexcept : governor_(a.of), weight_(a.weight) {}
  bool try_now();
  void arm();
  cancel_result withdraw() noexcept override;
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override;
  bool fits_run() const noexcept override;
  bool failed() const noexcept { return fate_ != fate::waiting && fate_ != fate::granted; }
  permit take();
  /// Called when the answer has arrived.
  void answered() noexcept;
  ~shared_wait();

 private:
  friend class shared_request;
  friend class shared_queue;
  enum class fate : std::uint8_t { waiting, granted, closed, full };
  [[noreturn]] void refuse() const;
  void leave() noexcept;

  // Deliberately not adjacent: a combined load into a permit would stall on the two separate
  // stores.
  shared_governor* governor_;
  shared_request* request_ = nullptr;  // while it is armed
  std::int64_t weight_;
  fate fate_ = fate::waiting;
};

}  // namespace detail
}  // namespace weir
