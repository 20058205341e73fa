// SPDX-License-Identifier: MIT
// The machinery of <weir/suspend.hpp>.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>

#include <weir/detail/core/wait.hpp>
#include <weir/error.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

class suspend_wait_base;
struct suspend_message;

/// The state shared by a pending `suspend` and its resumers. Two kinds of owners: the wait (which
/// lives in a coroutine frame and may end first) and the resumers, on any thread. The first answer
/// claims it; it is posted to the wait's loop as a message unless it is given there.
class suspend_core {
 public:
  suspend_core();
  suspend_core(const suspend_core&) = delete;
  suspend_core& operator=(const suspend_core&) = delete;
  virtual ~suspend_core();

  /// False if it was already answered or the wait has ended: the late answer is counted.
  bool claim();
  /// The claimed answer is complete: notifies the wait.
  void hand_over() noexcept;
  void add_resumer() noexcept { resumers_.fetch_add(1, std::memory_order_relaxed); }
  void drop_resumer() noexcept;
  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() noexcept;

  // The wait's side, on its loop.
  void attach(suspend_wait_base& wait) noexcept { wait_ = &wait; }
  /// The wait ends without an answer. False if an answer is in flight.
  bool end_waiting() noexcept;
  void detach() noexcept { wait_ = nullptr; }
  bool answered() const noexcept;
  void arrived() noexcept;

  std::exception_ptr error;  // written by the claimant

 private:
  friend struct suspend_message;
  enum class phase : std::uint8_t { waiting, answered, ended };
  struct shared;
  std::atomic<phase> phase_{phase::waiting};
  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> resumers_{0};
  suspend_wait_base* wait_ = nullptr;  // home loop only
  std::unique_ptr<shared> shared_;
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

 protected:
  suspend_wait_base() noexcept = default;
  ~suspend_wait_base();
  virtual suspend_core* make_core() = 0;
  virtual void call_start() = 0;
  virtual cancel_result call_canceller() = 0;
  virtual bool has_value() const noexcept = 0;
  suspend_core* core_ = nullptr;

 private:
  friend class suspend_core;
  friend class suspend_list;
  void answered() noexcept;
  void let_go() noexcept;
  bool later_ = false;
  suspend_wait_base* next_on_loop_ = nullptr;  // armed and unanswered ones of this loop
  suspend_wait_base** at_on_loop_ = nullptr;
};

}  // namespace detail
}  // namespace weir
