// SPDX-License-Identifier: MIT
// Part of <weir/blocking.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <weir/detail/core/frame.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/reply.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/outcome.hpp>

namespace weir {

namespace detail {

struct blocking_extra;
class blocking_job;

/// The caller's reference to a call.
struct leave_blocking {
  void operator()(blocking_job* job) const noexcept;
};

/// One call: the state shared by its caller and its thread. One block of the frame cache.
///
/// Invariants:
/// 1. The thread or caller that removes it from the pool's queue decides whether it runs.
/// 2. Function and result belong to the thread while it runs, then to the owner of its reply.
class blocking_job : public frame_allocated {
 public:
  blocking_job(const blocking_job&) = delete;
  blocking_job& operator=(const blocking_job&) = delete;

  /// Calls the function, stores its value or error in the result, and destroys it.
  void run() noexcept;
  virtual outcome_base& result() noexcept = 0;
  blocking_extra& extra() noexcept;

 protected:
  explicit blocking_job(bool may_be_abandoned) noexcept;
  virtual ~blocking_job();
  virtual void call() = 0;
  virtual void drop_function() noexcept = 0;

 private:
  friend struct blocking_extra;
  friend struct leave_blocking;
  static constexpr std::size_t extra_size = 80;
  alignas(std::max_align_t) std::byte extra_[extra_size];
};

using blocking_ref = std::unique_ptr<blocking_job, leave_blocking>;

template <class T, class F, class... Args>
class blocking_job_of final : public blocking_job {
 public:
  template <class... Given>
  explicit blocking_job_of(bool may_be_abandoned, Given&&... given)
      : blocking_job(may_be_abandoned), what_(std::in_place, std::forward<Given>(given)...) {}
  outcome_base& result() noexcept override { return out_; }

 private:
  void call() override {
    auto apply = [](F& fn, Args&... args) -> T { return fn(std::move(args)...); };
    if constexpr (std::is_void_v<T>) {
      std::apply(apply, *what_);
      out_.emplace();
    } else {
      out_.emplace(std::apply(apply, *what_));
    }
  }
  void drop_function() noexcept override { what_.reset(); }

  std::optional<std::tuple<F, Args...>> what_;
  outcome<T> out_;
};

/// The type-independent part of the wait.
class blocking_wait_base : public wait {
 public:
  struct args {
    explicit args(blocking_ref what) noexcept : job(std::move(what)) {}
    blocking_ref job;
  };

  bool poll() override { return false; }
  bool try_now() const noexcept { return false; }
  void link() override { arm(); }
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return job_ == nullptr || !job_->result().is_value(); }
  /// Called when the result has arrived.
  void answered() noexcept;

 protected:
  explicit blocking_wait_base(args&& a) noexcept : job_(std::move(a.job)) {}
  ~blocking_wait_base() = default;
  blocking_job& job() const noexcept { return *job_; }

 private:
  blocking_ref job_;        // null: abandoned
  bool withdrawn_ = false;  // a simulated call whose message is under way
};

template <class T>
class blocking_wait : public blocking_wait_base {
 public:
  using result = T;
  explicit blocking_wait(args&& a) noexcept : blocking_wait_base(std::move(a)) {}
  T take() { return static_cast<outcome<T>&>(job().result()).take(); }
};

template <class T>
inline constexpr bool refers_elsewhere = std::is_pointer_v<T> || std::ranges::enable_view<T>;
template <class T>
inline constexpr bool refers_elsewhere<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::initializer_list<T>> = true;

template <class F>
inline constexpr bool is_plain_function =
    std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>;

template <class F, class... Args>
concept blocking_function = requires(F& fn, Args&... args) { fn(std::move(args)...); };

/// The function's result type; static_asserts reject what `blocking` does not support.
template <class F, class... Args>
auto blocking_result() {
  using value = decltype(std::declval<F&>()(std::declval<Args>()...));
  static_assert(!std::is_reference_v<value>,
                "weir::blocking: the function returns a reference; return a value or a pointer");
  static_assert(!operation<value>,
                "weir::blocking takes a plain function that blocks; a task or an operation is "
                "awaited on its loop");
  return std::type_identity<value>{};
}

template <class F, class... Args>
auto make_blocking(bool may_be_abandoned, F&& fn, Args&&... args) {
  using function = std::decay_t<F>;
  using value = typename decltype(blocking_result<function, std::decay_t<Args>...>())::type;
  using job = blocking_job_of<value, function, std::decay_t<Args>...>;
  using wait_type = blocking_wait<value>;
  blocking_ref made(new job(may_be_abandoned, std::forward<F>(fn), std::forward<Args>(args)...));
  return pending<wait_type>(typename wait_type::args(std::move(made)));
}

}  // namespace detail
}  // namespace weir
