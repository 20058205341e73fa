// SPDX-License-Identifier: MIT
// Part of <weir/mutex.hpp>, which includes it after the declarations it needs.
#pragma once

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/name.hpp>

namespace weir {

namespace detail {

class lock_wait : public simple_wait<lock_wait, linked_wait> {
 public:
  struct args {
    mutex* of;
  };
  using result = mutex_guard;

  // Constructed where it is awaited, which may differ from where `lock` was called.
  explicit lock_wait(args&& a);
  ~lock_wait();
  bool try_now() noexcept;
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool in_line() const noexcept override { return true; }
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  mutex_guard take() noexcept {
    holds_ = false;
    return mutex_guard(*mutex_);
  }

 private:
  friend class weir::mutex;
  mutex* mutex_;
  bool holds_ = false;  // given, not yet taken
};

}  // namespace detail
}  // namespace weir
