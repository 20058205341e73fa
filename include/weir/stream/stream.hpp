// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <cstddef>
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
#include <weir/detail/flow/stage.hpp>
#include <weir/policy/settle.hpp>
#include <weir/task.hpp>

namespace weir {

template <class T>
class stream;
template <class T>
class any_stream;
template <class S>
class pipeline;
template <class T>
class next_result;

namespace detail {

template <class S>
class next_for_wait;

template <class S>
class next_wait_of;
template <class S>
class close_wait;

/// Waits for the end of a child; does not observe its result.
task<> wait_until_settled(core_ref child);
/// Makes `c` wait for the end of `rest`, if it is set.
void join_later(closing& c, core_ref rest);

/// The strand of a generator function and the slot of its values. Its frame refers to it, and it
/// owns the frame.
template <class T>
struct generator_of final : generator_base {
  generator_of() noexcept = default;
  static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  void dispose() noexcept override { delete this; }
  const T* value = nullptr;
  bool may_move = false;
};

/// The await of a co_yield: control goes to the consumer.
struct yield_await {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

template <class T>
struct generator_promise : promise_base {
  generator_promise() : self(new generator_of<T>) { self->know_frame(*this); }
  static void* operator new(std::size_t bytes) {
    void* const memory = allocate_frame(bytes);
    last_generator_frame = {memory, bytes};
    return memory;
  }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    deallocate_frame(memory, bytes);
  }
  stream<T> get_return_object(std::source_location here = std::source_location::current()) noexcept;
  yield_await yield_value(const T& v) noexcept
    requires(std::is_copy_constructible_v<T> && !destroyed_twice<T>)
  {
    return hand_over(v, false);
  }
  yield_await yield_value(T&& v) noexcept
    requires(!destroyed_twice<T>)
  {
    return hand_over(v, true);
  }
  // The same, but rejects braces.
  template <class U>
    requires(destroyed_twice<T> && std::same_as<std::remove_cvref_t<U>, T>)
  yield_await yield_value(U&& v) noexcept {
    constexpr bool may_move = std::is_same_v<U, T>;
    static_assert(may_move || std::is_copy_constructible_v<T>, "co_yield std::move(it)");
    return hand_over(v, may_move);
  }
  yield_await yield_value(no_braces<T>&&) noexcept
    requires(destroyed_twice<T>);
  void return_void() { static_cast<outcome<void>*>(out)->emplace(); }
  void unhandled_exception() noexcept { frame_failed(*this); }

  generator_of<T>* self;

 private:
  yield_await hand_over(const T& v, bool may_move) noexcept {
    self->value = std::addressof(v);
    self->may_move = may_move;
    self->yield();
    return {};
  }
};

/// A generator function as a stage.
template <class T>
class generator_stage {
 public:
  using value_type = T;
  static constexpr bool leaves_pending = false;

  explicit generator_stage(generator_of<T>* adopted) noexcept : self_(adopted) {}
  generator_stage(generator_stage&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {
    forget_puller();
  }
  generator_stage& operator=(generator_stage&& other) noexcept {
    std::swap(self_, other.self_);
    forget_puller();
    other.forget_puller();
    return *this;
  }
  ~generator_stage() { drop(); }

  pull poll(std::optional<T>& out, composite& owner) {
    if (self_ == nullptr) [[unlikely]]
      return pull::end;
    self_->run();
    if (!self_->yielded()) [[unlikely]]
      return self_->settled(owner, this);
    self_->taken();
    if constexpr (std::is_copy_constructible_v<T>) {
      if (!self_->may_move) {
        out.emplace(*self_->value);
        return pull::value;
      }
    }
    out.emplace(std::move(const_cast<T&>(*self_->value)));
    return pull::value;
  }
  unsigned withdraw_all() noexcept { return self_ == nullptr ? 0 : self_->withdraw_all(); }
  void shut(closing& c) { join_later(c, drop()); }
  void describe(dump_line& line) const {
    if (self_ != nullptr) self_->describe(line);
  }

 private:
  void forget_puller() const noexcept {
    if (self_ != nullptr) self_->forget_puller();
  }
  core_ref drop() noexcept {
    generator_of<T>* const dropped = std::exchange(self_, nullptr);
    return dropped == nullptr ? core_ref() : dropped->drop();
  }
  generator_of<T>* self_;
};

/// Runs a task that a stage must await, concurrently with the pull. The task owns what it uses,
/// because it may outlive the stage.
class task_leaf {
 public:
  explicit task_leaf(task<> t);
  task_leaf(task_leaf&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
  ~task_leaf() { (void)drop(); }
  /// For cleanup: giving up a pull does not interrupt it.
  static std::unique_ptr<task_leaf> shielded(task<> t);
  /// pending, or end. Throws its error, once.
  pull poll(composite& owner) {
    self_->run();
    return self_->settled(owner);
  }
  unsigned withdraw_all() noexcept { return self_->withdraw_all(); }
  void describe(dump_line& line) const { self_->describe(line); }
  /// Drops the task; if it must still be awaited, adds it to `c`.
  void shut(closing& c) { join_later(c, drop()); }

 private:
  core_ref drop() noexcept {
    generator_base* const dropped = std::exchange(self_, nullptr);
    return dropped == nullptr ? core_ref() : dropped->drop();
  }
  generator_base* self_;
};

/// Awaits all tasks, then throws the first error.
task<> run_closing(std::vector<task<>> rest);
/// Awaits a closing that has already started.
task<> finish_closing(std::unique_ptr<task_leaf> begun);
[[noreturn]] void raise_stream_busy();
[[noreturn]] void fatal_stream_pulled() noexcept;
void describe_pull(dump_line& line);
void add_words(dump_line& line, const char* words);
void emit_suppressed(const std::exception_ptr& error) noexcept;
/// The event `cleanup_skipped` or `cleanup_failed`.
void emit_cleanup(const char* event) noexcept;

}  // namespace detail

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

namespace detail {

/// Waits for the next value of a stream.
template <class S>
class next_wait_of : public pull_wait {
 public:
  struct args {
    weir::pipeline<S>* of;
  };
  using result = std::optional<value_of<S>>;

  explicit next_wait_of(args&& a) noexcept : of_(a.of) {}
  ~next_wait_of() { let_go(); }
  bool try_now() {
    if (of_->pulled_by_ != nullptr) [[unlikely]]
      return settle_or_wait(refuse());
    const pull answer = pull_once();
    if constexpr (!S::leaves_pending) {
      if (answer == pull::value) [[likely]]
        return true;
    }
    return settle_or_wait(answer);
  }
  cancel_result withdraw() noexcept override {
    const cancel_result answer = pull_wait::withdraw();
    if (answer == cancel_result::done) let_go();
    return answer;
  }
  cancel_result pause() noexcept override {
    const cancel_result answer = pull_wait::pause();
    if (answer == cancel_result::done) let_go();
    return answer;
  }
  void describe(dump_line& line) const override {
    describe_pull(line);
    if (is_polled()) of_->describe(line);
  }
  result take() {
    let_go();
    rethrow();
    // Value and flag separately: g++-12 moves a small optional with one wide load right after the
    // two were stored separately; no processor forwards such stores, and that cost more than the
    // rest of `next`.
    if (!value_) [[unlikely]]
      return std::nullopt;
    return result(std::move(*value_));
  }

 private:
  friend class weir::pipeline<S>;
  bool settle_or_wait(pull answer) noexcept {
    if (answer == pull::value || answer == pull::end) {
      armed_ = armed_ || S::leaves_pending;
      return settle();
    }
    of_->pulled_by_ = this;
    note_polled(answer);
    return false;
  }
  void let_go() noexcept {
    if (of_->pulled_by_ == this) [[unlikely]]
      of_->pull_ended();
    if (of_->extra_ != nullptr && of_->extra_->turn.is_of(*this)) of_->extra_->turn.let_go();
  }
  pull pull_once() {
    if (of_->being_closed()) [[unlikely]]
      return pull::end;
    try {
      if (of_->has_unread()) [[unlikely]] {
        value_ = std::exchange(of_->extra_->unread, std::nullopt);
        return pull::value;
      }
      return of_->poll(value_, *this);
    } catch (...) {
      fail(std::current_exception());
      return pull::end;
    }
  }
  pull poll_stages() override {
    if (of_->pulled_by_ != nullptr && of_->pulled_by_ != this) return refuse();
    of_->pulled_by_ = this;
    return pull_once();
  }
  pull refuse() {
    try {
      raise_stream_busy();
    } catch (...) {
      fail(std::current_exception());
    }
    return pull::end;
  }
  unsigned stand_down_stages() noexcept override {
    const bool refused = of_->pulled_by_ != nullptr && of_->pulled_by_ != this;
    return refused || of_->being_closed() ? 0 : of_->withdraw_all();
  }
  void put_back() noexcept override {
    try {
      of_->need_extra().unread = std::exchange(value_, std::nullopt);
    } catch (...) {
      emit_suppressed(std::current_exception());
    }
  }
  // A second concurrent pull is refused, but on its own turn.
  turn_slot& own_turn() override {
    turn_slot& turn = of_->need_extra().turn;
    return spare_.is_of(*this) || !(turn.is_free() || turn.is_of(*this)) ? spare_ : turn;
  }

  weir::pipeline<S>* of_;
  turn_slot spare_;
  result value_;
};

/// Waits until a stream is closed.
template <class S>
class close_wait : public pull_wait {
 public:
  struct args {
    weir::pipeline<S>* of;
  };
  using result = void;

  explicit close_wait(args&& a) noexcept : of_(a.of) {}
  void describe(dump_line& line) const override { describe_pull(line); }
  void take() const { rethrow(); }

 private:
  pull poll_stages() override {
    if (!of_->may_close(*this)) {
      const pull answer = wait_for_another();
      // Here and not in close(): another pull may have started before this wait starts.
      if (pull_wait* pending = of_->pulled_by_) of_->end_pull(*pending);
      return answer;
    }
    try {
      const pull answer = of_->poll_close(*this);
      if (answer == pull::pending) of_->need_extra().closed_by = this;
      if (answer == pull::end) of_->close_ended(*this);
      return answer;
    } catch (...) {
      fail(std::current_exception());
      of_->close_ended(*this);
      return pull::end;
    }
  }
  pull wait_for_another() {
    if (link_.state != arm_link::phase::armed) of_->need_extra().close_waits.push_back(&link_);
    link_.owner = this;
    link_.state = arm_link::phase::armed;
    return pull::pending;
  }
  unsigned stand_down_stages() noexcept override {
    if (link_.state == arm_link::phase::armed) std::erase(of_->extra_->close_waits, &link_);
    link_.state = arm_link::phase::idle;
    if (!of_->may_close(*this)) return 0;
    const unsigned leaving = of_->withdraw_all();
    of_->close_ended(*this);
    return leaving;
  }
  turn_slot& own_turn() override { return turn_; }
  weir::pipeline<S>* of_;
  arm_link link_;
  turn_slot turn_;
};

}  // namespace detail

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

namespace detail {

template <class P>
struct stage_type {};
template <class S>
struct stage_type<weir::pipeline<S>> {
  using type = S;
};
template <class T>
struct stage_type<stream<T>> {
  using type = generator_stage<T>;
};
template <class T>
struct stage_type<any_stream<T>>;

/// The stage type of any stream.
template <class P>
using stage_of = typename stage_type<std::remove_cvref_t<P>>::type;

template <class P>
concept any_pipeline = requires { typename stage_of<P>; };

}  // namespace detail
}  // namespace weir
