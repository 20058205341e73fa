// SPDX-License-Identifier: MIT
// Streams: values produced on demand, one at a time. `stream<T>` is a generator, a coroutine that
// yields with `co_yield`; `pipeline<S>` is a stream with stages behind it, as `|` makes it. A
// stream owns its source, its stages and the frames of its generator. It belongs to the loop on
// which it is pulled, and runs while its consumer awaits `next()`. It ends when its source does,
// with an error, which is thrown once, or early by `close()` or its destructor.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/generator.hpp>
#include <weir/detail/flow/generator_stage.hpp>
#include <weir/detail/flow/stage.hpp>
#include <weir/policy/settle.hpp>
#include <weir/task.hpp>

namespace weir {

/// A stream: values produced on demand, one at a time. Cold: it does nothing before the first
/// `next()` or while none is pending. No hidden buffer.
///
/// `next()` returns the next value, or an empty optional at the end. One at a time
/// (errc::stream_busy). An error ends the stream: it is thrown once, after which the stream is
/// empty. Cancelling a pending `next()` pauses the stream, and no value is lost; see weir::stream.
/// `close()` ends it early and awaits its cleanup. Destroying it does the same without waiting;
/// cleanup that would have to wait is skipped (event `cleanup_skipped`). It may be moved until its
/// first pull. Threads: home loop only.
template <class S>
class pipeline {
 public:
  using value_type = detail::value_of<S>;

  explicit pipeline(S stage) : stage_(std::move(stage)) {}
  pipeline(pipeline&& other) noexcept(std::is_nothrow_move_constructible_v<S>) = default;
  pipeline& operator=(pipeline&& other) = default;
  ~pipeline() {
    if (pulled_by_ != nullptr) detail::fatal_stream_pulled();
    if (extra_ != nullptr && extra_->closer != nullptr) detail::emit_cleanup("cleanup_skipped");
  }

  [[nodiscard]] auto next() { return detail::pending<detail::next_wait_of<S>>({this}); }
  /// As next(), for at most `d`: a next_result says whether there is an item, the stream has ended,
  /// or the pull timed out. In weir/stream/next_result.hpp.
  template <class Rep, class Period>
  [[nodiscard]] auto next_for(std::chrono::duration<Rep, Period> d);
  task<> close() { co_await shield(detail::pending<detail::close_wait<S>>({this})); }

  // Below: for the library.
  S release() && { return std::move(stage_); }
  static constexpr bool leaves_pending = S::leaves_pending;
  detail::pull poll(std::optional<value_type>& out, detail::composite& owner) {
    if (phase_ != phase::open) [[unlikely]]
      return poll_closing(owner);
    try {
      const detail::pull answer = stage_.poll(out, owner);
      if (answer != detail::pull::end) [[likely]]
        return answer;
    } catch (...) {
      need_extra().error = std::current_exception();
    }
    phase_ = phase::quieting;
    return poll_closing(owner);
  }
  unsigned withdraw_all() noexcept {
    return phase_ <= phase::quieting  ? stage_.withdraw_all()
           : phase_ == phase::closing ? extra_->closer->withdraw_all()
                                      : 0;
  }
  /// Closes it permanently, as a part of another stream.
  void shut(detail::closing& c) {
    if (phase_ <= phase::quieting) {
      stage_.shut(c);
    } else if (phase_ == phase::closing) {
      c.later(detail::finish_closing(std::move(extra_->closer)));
    }
    phase_ = phase::ended;
  }
  /// Closes it step by step: pending, or end. Throws what its cleanup throws.
  detail::pull poll_close(detail::composite& owner) {
    if (phase_ == phase::open) phase_ = phase::quieting;
    return poll_closing(owner);
  }
  void describe(detail::dump_line& line) const {
    phase_ == phase::closing ? extra_->closer->describe(line) : stage_.describe(line);
  }
  bool has_ended() const noexcept { return phase_ == phase::ended; }

 private:
  friend class detail::next_wait_of<S>;
  friend class detail::close_wait<S>;
  using pull = detail::pull;
  // quieting: ended, but a part of it may still be pending
  enum class phase : std::uint8_t { open, quieting, closing, ended };

  static void end_pull(detail::pull_wait& w) noexcept {
    static_cast<detail::next_wait_of<S>&>(w).end_early();
  }

  pull poll_closing(detail::composite& owner) {
    if (phase_ == phase::quieting) {
      if (stage_.withdraw_all() > 0) return pull::pending;
      shut();
    }
    if (phase_ == phase::closing && !poll_closer(owner)) return pull::pending;
    if (extra_ != nullptr && extra_->error != nullptr)
      std::rethrow_exception(std::exchange(extra_->error, nullptr));
    return pull::end;
  }
  void shut() {
    detail::closing rest;
    phase_ = phase::ended;
    stage_.shut(rest);
    if (rest.empty()) return;
    phase_ = phase::closing;
    need_extra().closer = detail::task_leaf::shielded(detail::run_closing(rest.take()));
  }
  bool poll_closer(detail::composite& owner) {
    try {
      if (extra_->closer->poll(owner) == pull::pending) return false;
    } catch (...) {
      if (extra_->error == nullptr) {
        extra_->error = std::current_exception();
      } else {
        detail::emit_suppressed(std::current_exception());
      }
    }
    phase_ = phase::ended;
    extra_->closer.reset();
    return true;
  }
  void pull_ended() noexcept {
    pulled_by_ = nullptr;
    if (extra_ != nullptr) wake_closes();
  }
  // Pulls and closes run one at a time. A next() after a close() is at the end; a close() waits.
  bool being_closed() const noexcept { return extra_ != nullptr && extra_->closed_by != nullptr; }
  bool has_unread() const noexcept { return extra_ != nullptr && extra_->unread.has_value(); }
  bool may_close(const detail::pull_wait& w) const noexcept {
    return pulled_by_ == nullptr && (!being_closed() || extra_->closed_by == &w);
  }
  void close_ended(const detail::pull_wait& w) noexcept {
    if (!being_closed() || extra_->closed_by != &w) return;
    extra_->closed_by = nullptr;
    wake_closes();
  }
  void wake_closes() noexcept {
    for (detail::arm_link* waits : std::exchange(extra_->close_waits, {}))
      waits->owner->arm_completed(*waits);
  }
  /// State that few streams need.
  struct extra {
    std::exception_ptr error;          // thrown when everything is closed
    std::optional<value_type> unread;  // found by a pull that was then cancelled
    std::unique_ptr<detail::task_leaf> closer;
    detail::pull_wait* closed_by = nullptr;      // the close() that is running
    std::vector<detail::arm_link*> close_waits;  // each close() waiting for a pull or close()
    detail::turn_slot turn;                      // of the pull that is pending
  };
  extra& need_extra() {
    if (extra_ == nullptr) extra_ = std::make_unique<extra>();
    return *extra_;
  }

  S stage_;
  phase phase_ = phase::open;
  detail::pull_wait* pulled_by_ = nullptr;
  std::unique_ptr<extra> extra_;
};

}  // namespace weir

#include <weir/detail/flow/stream_wait.hpp>

namespace weir {

/// The return type of a generator function: a coroutine that may `co_yield` values and `co_await`.
///
/// It runs in the fiber of its consumer, on demand. If a pending `next()` is cancelled (a race was
/// lost, a limit passed), the wait that the generator is parked on is withdrawn and started again
/// by the following `next()`; a sleep keeps its absolute time. A wait that cannot be withdrawn
/// without effect ends the generator instead, and the following `next()` throws
/// errc::stream_interrupted: this applies to waits that started a fiber (with_scope, settle, race
/// or with_timeout over tasks) or wait for an agent, a thread or another loop. If a `next()` ends
/// with a value while another generator of the pipeline is in such a wait, the wait stays in flight
/// and the following `next()` attaches to it; it ends with the stream, and the scope of the pull
/// joins the rest. A wait for a permit, a lock, room or an item keeps its place in the queue; what
/// it receives while no pull is pending stays with the generator, or is returned when the stream
/// ends. Ending early destroys the generator at its co_yield, innermost frame first. A lambda's
/// closure must outlive the stream.
template <class T>
class [[nodiscard]] stream : public pipeline<detail::generator_stage<T>> {
  static_assert(std::is_object_v<T>, "weir::stream<T>: T is an object type");

 public:
  using promise_type = detail::generator_promise<T>;
  explicit stream(detail::generator_of<T>* adopted) noexcept
      : pipeline<detail::generator_stage<T>>(detail::generator_stage<T>(adopted)) {}
};

template <class T>
stream<T> detail::generator_promise<T>::get_return_object(std::source_location here) noexcept {
  function = here;
  self->adopt(*this);
  return stream<T>(self);
}

}  // namespace weir

#include <weir/detail/flow/stage_of.hpp>
