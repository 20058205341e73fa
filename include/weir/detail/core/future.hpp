// SPDX-License-Identifier: MIT
// The machinery of <weir/future.hpp>.
#pragma once

#include <iosfwd>
#include <type_traits>
#include <utility>

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/outcome.hpp>

namespace weir {

template <class T>
class future;

namespace detail {

/// errc::wrong_loop if the running loop is not the home of `core` and the home still runs.
void require_future_home(const future_core& core);
/// Called when a future is destroyed on a thread that is not its home: aborts if the home still
/// runs.
void check_foreign_release(const future_core& core) noexcept;
void cancel_fiber(fiber& f, cancel_reason reason);
[[noreturn]] void raise_empty_future();

/// A counted reference to a future's core.
class core_ref {
 public:
  core_ref() noexcept = default;
  explicit core_ref(future_core* core) noexcept : core_(core) {
    if (core_ != nullptr) core_->retain();
  }
  /// Takes over a reference that is already counted.
  static core_ref adopt(future_core* core) noexcept {
    core_ref adopted;
    adopted.core_ = core;
    return adopted;
  }
  core_ref(const core_ref& other) noexcept : core_ref(other.core_) {}
  core_ref(core_ref&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  core_ref& operator=(core_ref other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~core_ref() {
    if (core_ == nullptr) return;
    if (core_->home != current_loop_serial()) [[unlikely]]
      check_foreign_release(*core_);
    core_->release();
  }
  future_core* get() const noexcept { return core_; }

 private:
  future_core* core_ = nullptr;
};

/// Waits until a future is settled. The typed waits below differ only in their result.
class future_wait : public simple_wait<future_wait, local_wait> {
 public:
  static constexpr bool home_bound = true;
  using args = core_ref;

  explicit future_wait(core_ref&& core) : core_(std::move(core)) {
    if (core_.get() == nullptr) raise_empty_future();
    require_future_home(*core_.get());
    if (core_.get()->guarded()) [[unlikely]]
      core_.get()->check_await();
  }
  bool try_now() noexcept { return core_.get()->done(); }
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void blockers(blocker_list& list) const override;
  bool failed() const noexcept { return !core_.get()->result().is_value(); }
  bool is_only_one() const noexcept { return next_ == this; }

 protected:
  ~future_wait() = default;
  future_core& core() const noexcept { return *core_.get(); }
  void leave() noexcept { unlink(); }
  outcome_base& observed() noexcept {
    core_.get()->note_observed();
    return core_.get()->result();
  }

 private:
  friend struct future_core;
  void unlink() noexcept;

  core_ref core_;
  future_wait* previous_ = nullptr;
  future_wait* next_ = nullptr;
};

/// Returns a reference to the result, any number of times.
template <class T>
class reference_wait : public future_wait {
 public:
  using result = std::add_lvalue_reference_t<const T>;
  using future_wait::future_wait;
  result take() { return std::as_const(static_cast<outcome<T>&>(observed())).value(); }
};

/// Returns a copy of the result.
template <class T>
class copy_wait : public future_wait {
 public:
  using result = T;
  using future_wait::future_wait;
  result take() { return std::as_const(static_cast<outcome<T>&>(observed())).value(); }
};

/// Moves the result out, once.
template <class T>
class take_wait : public future_wait {
 public:
  using result = T;
  using future_wait::future_wait;
  result take() {
    auto& out = static_cast<outcome<T>&>(observed());
    if (out.is_value()) return out.take();
    out.rethrow_problem();
  }
};

/// Waits only; unwraps nothing.
class settled_wait : public future_wait {
 public:
  using result = void;
  using future_wait::future_wait;
  bool failed() const noexcept { return false; }
  void take() noexcept {}
};

void print_why(std::ostream& out, future_core* core);

}  // namespace detail
}  // namespace weir
