// SPDX-License-Identifier: MIT
// Part of <weir/stream/stream.hpp>, which includes it after the declarations it needs.
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <weir/detail/core/braces.hpp>
#include <weir/detail/core/generator.hpp>
#include <weir/detail/flow/stage.hpp>
#include <weir/policy/settle.hpp>
#include <weir/task.hpp>

namespace weir {

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
    return result(std::move(*value_));  // NOLINT(bugprone-optional-value-conversion)
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
}  // namespace weir
