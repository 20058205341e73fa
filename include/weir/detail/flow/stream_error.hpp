// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/error.hpp>.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <weir/detail/flow/stream_op.hpp>
#include <weir/policy/retry.hpp>
#include <weir/policy/settle.hpp>
#include <weir/stream/join.hpp>

namespace weir {

namespace detail {

template <class S, class F>
class catch_with_stage {
  using inner = inner_stream<std::invoke_result_t<F&, std::exception_ptr>>;

 public:
  using value_type = value_of<S>;
  static constexpr bool leaves_pending = S::leaves_pending || inner::leaves_pending;
  catch_with_stage(S source, F fn) : source_(std::move(source)), fn_(std::move(fn)) {}
  catch_with_stage(catch_with_stage&& other)
      : source_(std::move(other.source_)), fn_(std::move(other.fn_)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!inner_) {
      try {
        return source_.poll(out, owner);
      } catch (...) {
        inner_.emplace(as_inner(fn_(std::current_exception())));
      }
    }
    return inner_->poll(out, owner);
  }
  unsigned withdraw_all() noexcept {
    return source_.withdraw_all() + (inner_ ? inner_->withdraw_all() : 0);
  }
  void shut(closing& c) {
    if (inner_) inner_->shut(c);
    source_.shut(c);
  }
  void describe(dump_line& line) const {
    if (inner_) return inner_->describe(line);
    source_.describe(line);
  }

 private:
  weir::pipeline<S> source_;
  F fn_;
  std::optional<inner> inner_;
};

/// Decides whether a failed stream is created again, and after which delay.
class stream_retry {
 public:
  explicit stream_retry(const retry_options& options);
  stream_retry(stream_retry&&) noexcept;
  ~stream_retry();
  void begin_attempt();
  /// The delay before the next attempt; throws the error if there is none.
  duration after_failure(std::exception_ptr error, retry_question ask, void* predicate);
  /// An item was delivered: resets the count of attempts, unless the options say otherwise.
  void delivered() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Retries every error.
struct retry_always {
  static retry_question question() noexcept { return nullptr; }
};
template <class When>
struct retry_if {
  static retry_question question() noexcept {
    return [](void* fn, const std::exception_ptr& error) -> retry_decision {
      return static_cast<retry_if*>(fn)->when(error);
    };
  }
  When when;
};

template <class F, class When = retry_always>
class retry_stage {
  using inner = inner_stream<std::invoke_result_t<F&>>;

 public:
  using value_type = typename inner::value_type;
  static constexpr bool leaves_pending = inner::leaves_pending;
  retry_stage(F fn, stream_retry retry, When when)
      : fn_(std::move(fn)), retry_(std::move(retry)), when_(std::move(when)) {}
  retry_stage(retry_stage&& other)
      : fn_(std::move(other.fn_)), retry_(std::move(other.retry_)), when_(std::move(other.when_)) {}
  template <class P>
  retry_stage<F, retry_if<P>> with(P predicate) && {
    return {std::move(fn_), std::move(retry_), retry_if<P>{std::move(predicate)}};
  }
  pull poll(std::optional<value_type>& out, composite& owner) {
    for (;;) {
      if (pause_.made()) {
        if (!pause_.poll(owner)) return pull::pending;
        pause_.take();
        pause_.drop();
      }
      try {
        if (!inner_) {
          retry_.begin_attempt();
          inner_.emplace(as_inner(fn_()));
        }
        const pull answer = inner_->poll(out, owner);
        if (answer == pull::value) retry_.delivered();
        return answer;
      } catch (...) {
        wait_for(retry_.after_failure(std::current_exception(), When::question(), &when_));
      }
      if (turn_used_up()) return pull::again;
    }
  }
  unsigned withdraw_all() noexcept {
    return pause_.withdraw_all() + (inner_ ? inner_->withdraw_all() : 0);
  }
  void shut(closing& c) {
    pause_.drop();
    if (inner_) inner_->shut(c);
  }
  void describe(dump_line& line) const {
    if (pause_.made()) return pause_.describe(line);
    if (inner_) inner_->describe(line);
  }

 private:
  void wait_for(duration pause) {
    inner_.reset();
    if (pause > duration::zero()) pause_.make(ticks(saturating_add(now(), pause)));
  }
  F fn_;
  stream_retry retry_;
  [[no_unique_address]] When when_;
  std::optional<inner> inner_;
  wait_leaf<sleep_wait> pause_;
};

template <class S, class F>
class finally_stage {
 public:
  using value_type = value_of<S>;
  static constexpr bool leaves_pending = S::leaves_pending;
  finally_stage(S source, F fn)
      : source_(std::in_place, std::move(source)),
        cleanup_(std::make_unique<defer_entry<F>>(std::move(fn))) {}
  finally_stage(finally_stage&& other)
      : source_(std::move(other.source_)), cleanup_(std::move(other.cleanup_)) {}
  ~finally_stage() {
    if (leaf_ != nullptr) emit_cleanup("cleanup_skipped");  // the rest of it
    if (cleanup_ == nullptr || !begun_) return;
    source_.reset();  // innermost first
    run_now();
  }
  pull poll(std::optional<value_type>& out, composite& owner) {
    begun_ = true;
    if (cleanup_ != nullptr) {
      try {
        const pull answer = source_->poll(out, owner);
        if (answer != pull::end) return answer;
        how_.emplace();
      } catch (...) {
        how_.set_error(std::current_exception());
      }
      leaf_ = begin();
    }
    if (leaf_ != nullptr && !finish(owner)) return pull::pending;
    if (how_.is_error()) std::rethrow_exception(how_.error());
    return pull::end;
  }
  unsigned withdraw_all() noexcept {
    return leaf_ != nullptr ? leaf_->withdraw_all() : source_->withdraw_all();
  }
  void shut(closing& c) {
    source_->shut(c);
    if (leaf_ != nullptr) return c.later(finish_closing(std::move(leaf_)));
    if (!begun_ || cleanup_ == nullptr) return;
    how_.emplace();
    c.later(run_later_(std::move(cleanup_)));
  }
  void describe(dump_line& line) const {
    if (leaf_ != nullptr) return leaf_->describe(line);
    source_->describe(line);
  }

 private:
  using entry_ptr = std::unique_ptr<defer_entry<F>>;
  std::unique_ptr<task_leaf> begin() {
    entry_ptr cleanup = std::move(cleanup_);
    try {
      task<> rest = cleanup->run(outcome_view(how_));
      if (rest) return task_leaf::shielded(run_kept_(std::move(cleanup), std::move(rest)));
    } catch (...) {
      note_failure();
    }
    return nullptr;
  }
  void note_failure() {
    if (how_.is_error()) {
      emit_suppressed(std::current_exception());
    } else {
      how_.set_error(std::current_exception());
    }
  }
  bool finish(composite& owner) {
    try {
      if (leaf_->poll(owner) == pull::pending) return false;
    } catch (...) {
      note_failure();
    }
    leaf_.reset();
    return true;
  }
  // The function outlives its task, even if the stage does not.
  static task<> run_kept(entry_ptr, task<> rest) { co_await std::move(rest); }
  static task<> run_later(entry_ptr cleanup) {
    outcome<void> how;
    how.emplace();
    task<> rest = cleanup->run(outcome_view(how));
    if (rest) co_await std::move(rest);
  }
  void run_now() noexcept {
    try {
      outcome<void> how;
      how.emplace();
      const task<> rest = cleanup_->run(outcome_view(how));
      if (rest) emit_cleanup("cleanup_skipped");
    } catch (...) {
      emit_cleanup("cleanup_failed");
    }
  }

  std::optional<weir::pipeline<S>> source_;
  task<> (*run_later_)(entry_ptr) = &run_later;  // pointers, as in pump_stage
  task<> (*run_kept_)(entry_ptr, task<>) = &run_kept;
  entry_ptr cleanup_;  // null once it has been started
  std::unique_ptr<task_leaf> leaf_;
  outcome<void> how_;
  bool begun_ = false;
};

}  // namespace detail
}  // namespace weir
