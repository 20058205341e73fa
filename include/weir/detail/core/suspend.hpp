// SPDX-License-Identifier: MIT
// The machinery of <weir/suspend.hpp>.
#pragma once

#include <atomic>
#include <exception>
#include <optional>

#include <weir/detail/core/counted_ref.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

class suspend_wait_base;

/// The state shared by a pending `suspend` and its resumers on any thread. The resumers together
/// are the answerer; the first answer claims the reply. They outlive the answer, so it is counted:
/// the reply has one reference, and all resumers have one.
class suspend_core : public reply_to<suspend_wait_base>,
                     public counted<suspend_core>,
                     public frame_allocated {
 public:
  suspend_core() noexcept : counted(2) {}
  virtual ~suspend_core() = default;

  /// False if it was already answered or the wait has ended: the late answer is counted.
  bool claim();
  void add_resumer() noexcept { resumers_.fetch_add(1, std::memory_order_relaxed); }
  void drop_resumer() noexcept {
    if (resumers_.fetch_sub(1, std::memory_order_acq_rel) == 1) end_answering();
  }
  void dispose() noexcept override { release(); }

  std::exception_ptr error;  // written by the claimant

 private:
  friend class suspend_list;
  void end_answering() noexcept;
  std::atomic<std::uint32_t> resumers_{1};  // the wait is one while it starts
};

template <class T>
class suspend_state final : public suspend_core {
 public:
  std::optional<stored_t<T>> value;
};

/// The type-independent part of a suspend.
class suspend_wait_base : public wait {
 public:
  bool poll() override { return false; }
  void link() override { arm(); }
  bool try_now() const noexcept { return false; }
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return core_->error != nullptr; }
  /// Called when the answer has arrived.
  void answered() noexcept;

 protected:
  suspend_wait_base() noexcept = default;
  ~suspend_wait_base();
  virtual suspend_core* make_core() = 0;
  virtual void call_start() = 0;
  virtual cancel_result call_canceller() = 0;
  virtual bool has_value() const noexcept = 0;
  suspend_core* core_ = nullptr;

 private:
  friend class suspend_list;
  void let_go() noexcept;
  bool later_ = false;
  suspend_wait_base* next_on_loop_ = nullptr;  // armed and unanswered ones of this loop
  suspend_wait_base** at_on_loop_ = nullptr;
};

}  // namespace detail
}  // namespace weir
