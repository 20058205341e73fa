// SPDX-License-Identifier: MIT
// Part of <weir/governor/counting.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>

#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/governor/governor.hpp>
#include <weir/name.hpp>
#include <weir/policy/deadline.hpp>

namespace weir {

namespace detail {

class adjusting_governor;
class adjusted_wait;

/// Waits for permits of a counting governor, first come, first served.
class acquire_wait : public simple_wait<acquire_wait, linked_wait> {
 public:
  struct args {
    counting_governor* of;
    std::int64_t weight;
  };
  using result = permit;

  explicit acquire_wait(args&& a) noexcept : governor_(a.of), weight_(a.weight) {}
  bool try_now() noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return fate_ != fate::waiting && fate_ != fate::granted; }
  permit take();
  ~acquire_wait();

 private:
  friend class weir::counting_governor;
  friend class adjusting_governor;
  friend class adjusted_wait;
  enum class fate : std::uint8_t { waiting, granted, closed, full };
  [[noreturn]] void refuse() const;

  counting_governor* governor_;
  std::int64_t weight_;
  fate fate_ = fate::waiting;
};

}  // namespace detail
}  // namespace weir
