// SPDX-License-Identifier: MIT
// Stages, the parts of a stream.
//
// A stage is a plain class, fused with the stages above it by templates. It has a `value_type` and
//   pull poll(std::optional<value_type>& out, composite& owner)   asks for the next value, without
//       waiting. `out` is empty before, and filled iff the answer is `value`. If the answer is
//       `pending`, everything that it waits for notifies `owner` to poll again; parts that an
//       earlier poll armed stay armed. It may throw, which ends the stream.
//   unsigned withdraw_all()        the pull ends or is given up (`owner` says which): withdraws the
//       armed parts without loss. Returns how many of them will still notify `owner` that they are
//       quiet, or in flight (see generator_base). Nothing refers to `owner` after that.
//   void shut(closing& c)        closes it permanently, innermost first; tasks that must be awaited
//       for that are added to `c`, and own what they use. Called at most once, when nothing is
//       armed.
//   void describe(dump_line&) const   what it waits for.
//   static constexpr bool leaves_pending   whether it may answer `value` or `end` or throw while a
//       part of it is armed; such parts are made quiet before the pull ends.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <weir/detail/core/generator.hpp>
#include <weir/detail/core/wait.hpp>
#include <weir/task.hpp>

namespace weir::detail {

/// The tasks to await before a stream is closed, in this order.
class closing {
 public:
  void later(task<> rest) { rest_.push_back(std::move(rest)); }
  bool empty() const noexcept { return rest_.empty(); }
  std::vector<task<>> take() noexcept { return std::move(rest_); }

 private:
  std::vector<task<>> rest_;
};

template <class S>
concept stage =
    requires(S& s, std::optional<typename S::value_type>& out, composite& c, closing& end) {
      { s.poll(out, c) } -> std::same_as<pull>;
      { s.withdraw_all() } -> std::same_as<unsigned>;
      s.shut(end);
    };

template <class S>
using value_of = typename S::value_type;

/// Base of a stage on top of another: forwards everything to it.
template <class S>
class stage_over {
 public:
  static constexpr bool leaves_pending = S::leaves_pending;
  explicit stage_over(S source) : source_(std::move(source)) {}
  unsigned withdraw_all() noexcept { return source_.withdraw_all(); }
  void shut(closing& c) { source_.shut(c); }
  void describe(dump_line& line) const { source_.describe(line); }

 protected:
  S source_;
};

/// A source stage that never waits.
class ready_stage {
 public:
  static constexpr bool leaves_pending = false;
  unsigned withdraw_all() const noexcept { return 0; }
  void shut(closing&) const noexcept {}
  void describe(dump_line& line) const;
};

/// One wait as a part of a stage. It is started by `arm` and restarted after a pause.
template <class W>
class wait_leaf {
 public:
  wait_leaf() noexcept = default;
  wait_leaf(wait_leaf&& other) noexcept { (void)other; }  // moved only before the first pull

  bool made() const noexcept { return wait_.has_value(); }
  void make(typename W::args args) { wait_.emplace(std::move(args)); }
  void drop() noexcept {
    wait_.reset();
    link_.state = arm_link::phase::idle;
  }
  /// Whether it is complete: then call take(). If not, `owner` will be notified.
  bool poll(composite& owner) {
    if (link_.state == arm_link::phase::completed) return true;
    if (link_.state != arm_link::phase::idle) return false;
    if (wait_->poll()) return true;
    link_.owner = &owner;
    link_.state = arm_link::phase::armed;
    wait_->belongs_to(link_);
    wait_->link();
    return false;
  }
  typename W::result take() {
    link_.state = arm_link::phase::idle;
    return wait_->take();
  }
  unsigned withdraw_all() noexcept {
    if (link_.state == arm_link::phase::leaving || link_.state == arm_link::phase::confirming)
      return 1;
    if (link_.state != arm_link::phase::armed) return 0;
    link_.state = arm_link::phase::leaving;
    const cancel_result answer = wait_->withdraw();
    if (link_.state != arm_link::phase::leaving) return 0;  // it completed instead
    if (answer == cancel_result::done) {
      link_.state = arm_link::phase::idle;
      return 0;
    }
    if (answer == cancel_result::later) link_.state = arm_link::phase::confirming;
    return 1;
  }
  void describe(dump_line& line) const {
    if (wait_) wait_->describe(line);
  }

 private:
  // Waits are neither movable nor final and have no public destructor; this class has one.
  struct owned final : W {
    explicit owned(typename W::args&& a) : W(std::move(a)) {}
  };
  std::optional<owned> wait_;
  arm_link link_;
};

class pull_wait;

/// The turns of a pull that waits.
struct pull_turn final : special_strand, frame_allocated {
  bool begin_turn() noexcept override;
  void end_turn() noexcept override;
  void dispose() noexcept override { delete this; }
  pull_wait* of = nullptr;
};

/// Owns the turns of one pull at a time. If they are dropped while queued, they become stray
/// (special_strand::stray).
class turn_slot {
 public:
  turn_slot() noexcept = default;
  turn_slot(turn_slot&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
  turn_slot& operator=(turn_slot&& other) noexcept {
    std::swap(turn_, other.turn_);
    return *this;
  }
  ~turn_slot() { drop(); }
  pull_turn& get() {
    if (turn_ == nullptr) turn_ = new pull_turn;
    return *turn_;
  }
  bool is_of(const pull_wait& w) const noexcept { return turn_ != nullptr && turn_->of == &w; }
  bool is_free() const noexcept { return turn_ == nullptr || turn_->of == nullptr; }
  /// The pull has ended. The turns are kept for the next one, unless they are queued.
  void let_go() noexcept {
    turn_->of = nullptr;
    if (turn_->queued) drop();
  }
  void drop() noexcept;

 private:
  pull_turn* turn_ = nullptr;
};

/// The wait behind every pull of a stream: polls the stages, on its own turns while it waits.
///
/// Invariants:
/// 1. While it waits, a part of its stages is armed, or its turn is queued, or both.
/// 2. When it is complete or withdrawn, neither, and no stage refers to it: `armed_` is set before
///    the stages are first polled, and armed parts are withdrawn at the end. A pull that
///    completes with the first poll, of stages that cannot leave anything pending, skips this.
/// 3. Stages are polled when it is awaited directly, else only on its own turns: a composite that
///    polls all its arms starts nothing that it may not need.
class pull_wait : public composite {
 public:
  static constexpr bool parks_after_poll = true;
  bool was_polled = false;                  // by the coroutine that awaits it
  static constexpr bool home_bound = true;  // as the stream is
  bool poll() override { return phase_ == phase::settled && is_quiet(); }
  void link() override;
  bool try_now();
  void arm();
  cancel_result withdraw() noexcept override;
  /// Always pausable: parts that its stages cannot pause stay in flight, and it attaches to them
  /// again.
  cancel_result pause() noexcept override;
  void arm_completed(arm_link& link) noexcept override;
  pull_end why_ending() const noexcept override {
    return phase_ == phase::given_up ? pull_end::given_up
           : phase_ == phase::paused ? pull_end::paused
                                     : pull_end::result;
  }
  bool failed() const noexcept { return error_ != nullptr; }

 protected:
  pull_wait() noexcept = default;
  ~pull_wait() = default;

  virtual pull poll_stages() = 0;
  virtual unsigned stand_down_stages() noexcept = 0;
  /// The poll that found a value also cancelled the pull: the value stays in the stream.
  virtual void put_back() noexcept {}
  /// Where its turns are kept; called when it starts to wait.
  virtual turn_slot& own_turn() = 0;
  /// Ends the pull now, without a result.
  void end_early() noexcept;
  void fail(std::exception_ptr error) noexcept { error_ = std::move(error); }
  void rethrow() const {
    if (error_ != nullptr) [[unlikely]]
      std::rethrow_exception(error_);
  }
  /// Whether its stages are waiting, or it waits until they are quiet.
  bool is_polled() const noexcept { return armed_ || leaving_ > 0; }
  /// Called when there is a result; true if everything is quiet.
  bool settle() noexcept;
  /// Not settled: the polled parts are armed.
  void note_polled(pull answer) {
    armed_ = true;
    again_ = answer == pull::again;
    begin_to_wait(*current->top);
  }
  bool armed_ = false;  // a part may be armed

 private:
  friend struct pull_turn;
  enum class phase : std::uint8_t { open, settled, paused, given_up };

  void begin_to_wait(context& inside) {
    if (turn_ == nullptr || turn_->of != this) turn_ = &own_turn().get();
    turn_->of = this;
    turn_->top = &inside;
  }
  bool has_turn() const noexcept { return turn_ != nullptr && turn_->queued; }
  void drop_turn() noexcept;
  bool is_quiet() const noexcept { return leaving_ == 0 && !has_turn(); }
  void take_a_turn() noexcept;
  void poll_on_turn();
  void one_less() noexcept;
  void withdraw_all() noexcept;

  pull_turn* turn_ = nullptr;
  int leaving_ = 0;  // parts that will still notify that they are quiet
  phase phase_ = phase::open;
  bool again_ = false;
  bool counting_ = false;
  bool polling_ = false;  // on its own turn
  std::exception_ptr error_;
};

}  // namespace weir::detail
