// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/stream.hpp>.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
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

/// Whether it makes a difference that a yielded value is moved instead of copied.
template <class T>
constexpr bool moving_matters = !std::is_trivially_copyable_v<T>;

/// The strand of a generator function and the slot of its values. Its frame refers to it, and it
/// owns the frame.
template <class T>
struct generator_of final : generator_base, frame_allocated {
  generator_of() noexcept = default;
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
    if constexpr (moving_matters<T>) self->may_move = may_move;
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

  // Always inlined: clang would call it for each item, and save five registers.
  [[gnu::always_inline]] pull poll(std::optional<T>& out, composite& owner) {
    generator_of<T>* const self = self_;  // the same until the pull ends
    if (self == nullptr) [[unlikely]]
      return pull::end;
    if (!self->run()) [[unlikely]]
      return self->settled(owner, this);
    self->taken();
    if constexpr (std::is_copy_constructible_v<T>) {
      if (!moving_matters<T> || !self->may_move) {
        out.emplace(*self->value);
        return pull::value;
      }
    }
    out.emplace(std::move(const_cast<T&>(*self->value)));
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
}  // namespace weir
