// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/task.hpp>

namespace weir {

class permit;

namespace detail {

/// The home of permits that any thread releases directly, by an atomic addition.
inline constexpr std::uint32_t home_anywhere = 0xffffffff;

/// Receives released permits.
class permit_source {
 public:
  permit_source() = default;
  permit_source(const permit_source&) = delete;
  permit_source& operator=(const permit_source&) = delete;
  /// On the home loop (or anywhere, for a source without a home).
  virtual void give_back(std::int64_t weight) = 0;
  /// The loop it belongs to now; it rebinds if its home has ended. Called under `home_mutex()`.
  virtual std::uint32_t current_home() const noexcept { return 0; }
  /// For permits at home_anywhere: units were released, and a mark was set. `free` is what was free
  /// then.
  virtual void settle(std::int64_t) noexcept {}

 protected:
  ~permit_source() = default;

  friend class weir::permit;
  friend bool release_slowly(permit_source& source, std::uint32_t home, std::int64_t weight);
  // For permits at home_anywhere `free_` is atomic, and is units times `unit`, plus marks.
  static constexpr std::int64_t unit = 8;
  static constexpr std::int64_t marks = unit - 1;
  std::int64_t free_ = 0;     // units that may be granted; negative after shrinking
  bool only_counts_ = false;  // no waiter and no idle callback: a release just adds to `free_`
};

template <class F>
class function_source final : public permit_source {
 public:
  template <class G>
  explicit function_source(G&& fn) : fn_(std::forward<G>(fn)) {}
  void give_back(std::int64_t) override {
    F fn = std::move(fn_);
    delete this;
    fn();
  }

 private:
  F fn_;
};

/// Releases a permit when that takes more than counting: on its home loop, anywhere if it has none,
/// or by one message home. False: its home is a durable run, and the caller is outside it.
bool release_slowly(permit_source& source, std::uint32_t home, std::int64_t weight);
[[noreturn]] void refuse_release();
void report_failed_release() noexcept;

}  // namespace detail

/// The right to do something, granted by a governor. RAII, movable, empty by default; may be
/// released on any thread; a second release does nothing. Permits of a governor that a durable run
/// created are released in that run only (errc::not_journaled).
class [[nodiscard]] permit {
 public:
  permit() noexcept = default;
  /// A permit of a user-defined governor: `fn` is called once, on release.
  template <class F>
    requires(std::invocable<std::decay_t<F>&> && !std::is_same_v<std::decay_t<F>, permit>)
  explicit permit(F&& fn)
      : source_(new detail::function_source<std::decay_t<F>>(std::forward<F>(fn))), weight_(1) {}
  permit(permit&& other) noexcept
      : source_(std::exchange(other.source_, nullptr)),
        weight_(other.weight_),
        home_(other.home_) {}
  permit& operator=(permit&& other) noexcept {
    permit old(std::move(*this));
    source_ = std::exchange(other.source_, nullptr);
    weight_ = other.weight_;
    home_ = other.home_;
    return *this;
  }
  ~permit() {
    if (source_ == nullptr) return;
    try {
      release();
    } catch (...) {
      detail::report_failed_release();
    }
  }

  /// Releases it; throws what the release function throws.
  void release() {
    detail::permit_source* source = std::exchange(source_, nullptr);
    if (source == nullptr) return;
    if (home_ == detail::current_loop_serial() && source->only_counts_) [[likely]] {
      source->free_ += weight_;
      return;
    }
    if (detail::release_slowly(*source, home_, weight_)) [[likely]]
      return;
    source_ = source;
    detail::refuse_release();
  }
  explicit operator bool() const noexcept { return source_ != nullptr; }
  std::int64_t weight() const noexcept { return source_ == nullptr ? 0 : weight_; }

  // Below: for governors of the library.
  permit(detail::permit_source& source, std::int64_t weight, std::uint32_t home) noexcept
      : source_(&source), weight_(weight), home_(home) {}

 private:
  detail::permit_source* source_ = nullptr;
  std::int64_t weight_ = 0;
  std::uint32_t home_ = 0;  // the loop that must do the release; 0: give_back on any thread
};

/// A type that grants permits.
template <class G>
concept governor = requires(G& g) {
  { g.acquire() } -> detail::operation;
  { g.try_acquire() } -> std::same_as<std::optional<permit>>;
  requires std::same_as<detail::result_t<decltype(g.acquire())>, permit>;
};

namespace detail {

[[noreturn]] void raise_both(std::exception_ptr first, std::exception_ptr second);

template <class T, class G, class Op>
task<T> run_with(G& g, Op op) {
  permit held = co_await g.acquire();
  outcome<T> out;
  try {
    if constexpr (std::is_void_v<T>) {
      co_await detail::as_task(op, this_context());
      out.emplace();
    } else {
      out.emplace(co_await detail::as_task(op, this_context()));
    }
  } catch (...) {
    out.set_error(std::current_exception());
  }
  try {
    held.release();
  } catch (...) {
    if (out.is_error()) raise_both(out.error(), std::current_exception());
    throw;
  }
  co_return out.take();
}

}  // namespace detail

/// Runs `op` under a permit of `g`. If `op` and the release both fail: error_group, the op's error
/// first.
template <governor G, detail::operation Op>
auto with(G& g, Op&& op) {
  using plain = detail::held_t<Op>;
  return detail::run_with<detail::result_t<plain>, G, plain>(g, std::forward<Op>(op));
}

namespace detail {

/// A function whose every call runs under a permit.
template <class G, class F>
class governed {
 public:
  governed(G& g, F fn) : governor_(&g), fn_(std::move(fn)) {}
  template <class... Args>
  auto operator()(Args... args) const {
    using made = std::invoke_result_t<const F&, Args...>;
    return run<result_t<made>, Args...>(*governor_, fn_, std::move(args)...);
  }

 private:
  template <class T, class... Args>
  static task<T> run(G& g, F fn, Args... args) {
    auto op = [&]() { return fn(std::move(args)...); };
    co_return co_await weir::with(g, op);
  }
  G* governor_;
  F fn_;
};

}  // namespace detail

namespace detail {

/// What `wrap` returns; a stream becomes another stream, see weir/stream/async.hpp.
template <class G, class F>
struct wrapped {
  static auto make(G& g, F fn) { return governed<G, F>(g, std::move(fn)); }
};

}  // namespace detail

/// A function with the same arguments that runs under a permit of `g` and returns a task; for a
/// stream, a stream whose every pull holds a permit.
template <governor G, class F>
auto wrap(G& g, F&& fn) {
  return detail::wrapped<G, std::decay_t<F>>::make(g, std::forward<F>(fn));
}

}  // namespace weir
