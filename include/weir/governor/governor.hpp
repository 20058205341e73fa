// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/permit_source.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/task.hpp>

namespace weir {

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
    if (home_ == detail::home_anywhere) return source->add_units(weight_);
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

}  // namespace weir

#include <weir/detail/core/run_with.hpp>

namespace weir {

/// Runs `op` under a permit of `g`. If `op` and the release both fail: error_group, the op's error
/// first.
template <governor G, detail::operation Op>
auto with(G& g, Op&& op) {
  using plain = detail::held_t<Op>;
  return detail::run_with<detail::result_t<plain>, G, plain>(g, std::forward<Op>(op));
}

}  // namespace weir

#include <weir/detail/core/governed.hpp>

namespace weir {

/// A function with the same arguments that runs under a permit of `g` and returns a task; for a
/// stream, a stream whose every pull holds a permit.
template <governor G, class F>
auto wrap(G& g, F&& fn) {
  return detail::wrapped<G, std::decay_t<F>>::make(g, std::forward<F>(fn));
}

}  // namespace weir
