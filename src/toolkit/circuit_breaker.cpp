// SPDX-License-Identifier: MIT
#include <weir/policy/circuit_breaker.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

#include <weir/detail/core/run_rules.hpp>
#include <weir/detail/toolkit/policy_event.hpp>

#include "core/loop.hpp"
#include "toolkit/option.hpp"
#include "toolkit/sliding_window.hpp"

namespace weir {

namespace detail {

namespace {

struct call_counts {
  std::int64_t calls = 0;
  std::int64_t failures = 0;
  std::int64_t slow = 0;
  call_counts& operator+=(const call_counts& o) noexcept {
    calls += o.calls;
    failures += o.failures;
    slow += o.slow;
    return *this;
  }
  call_counts& operator-=(const call_counts& o) noexcept {
    calls -= o.calls;
    failures -= o.failures;
    slow -= o.slow;
    return *this;
  }
};

std::string in_words(duration d) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(d).count();
  return std::to_string(ms) + " ms";
}

bool reaches(std::int64_t part, std::int64_t whole, double limit) noexcept {
  return static_cast<double>(part) >= limit * static_cast<double>(whole);
}

}  // namespace

/// Shared by a circuit_breaker and the operations behind it. Any thread.
///
/// Invariants:
/// 1. `epoch_` changes with the state; a call that began in another epoch changes nothing.
/// 2. Half open, at most `probes` calls are running or have ended; a cancelled call returns its
///    place.
/// 3. Events are emitted after the lock is released, by the thread that caused them.
class breaker_core {
 public:
  explicit breaker_core(const circuit_breaker_options& options);

  struct admission {
    std::uint64_t epoch = 0;
    std::optional<duration> rejected_for;  // empty: the call is admitted
    const char* event = nullptr;           // to be emitted
  };
  admission admit(time_point now);
  /// The event to be emitted, or null.
  const char* ended(std::uint64_t epoch, bool failed, duration took, time_point now);
  void forget(std::uint64_t epoch) noexcept;
  const char* isolate();
  const char* reset();
  circuit_state state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }
  std::string_view name() const noexcept { return name_.view(); }
  std::string_view object() const noexcept { return name_.empty() ? "breaker" : name_.view(); }
  void require_here() const { made_.require_here({"circuit breaker", name_.view()}); }

 private:
  bool bad(const call_counts& c, std::int64_t of) const noexcept {
    return reaches(c.failures, of, options_.failure_ratio) ||
           reaches(c.slow, of, options_.slow_ratio);
  }
  const char* enter(circuit_state next) noexcept;
  const char* open(time_point now) noexcept;
  const char* judge_probes(time_point now) noexcept;

  const circuit_breaker_options options_;
  const kept_name name_;
  const made_in_run made_;
  mutable std::mutex mutex_;
  circuit_state state_ = circuit_state::closed;
  std::uint64_t epoch_ = 0;
  sliding_window<call_counts, forgets::early> window_;
  time_point opened_at_{};
  std::int64_t probes_begun_ = 0;  // half open: running or ended
  call_counts probed_;
};

breaker_core::breaker_core(const circuit_breaker_options& options)
    : options_(options), name_(options.name), window_(options.window) {
  const auto is_ratio = [](double r) { return r > 0 && r <= 1; };
  const auto require = [](bool good, const char* what) {
    require_option(good, "circuit_breaker", what);
  };
  require(is_ratio(options.failure_ratio), "failure_ratio is not above 0 and at most 1");
  require(options.minimum_calls >= 1, "minimum_calls is not positive; give 1 or more");
  require(options.window > duration::zero(), "window is not positive; give it a length");
  require(options.open_for >= duration::zero(), "open_for is negative; give 0 or more");
  require(options.probes >= 1, "probes is not positive; give 1 or more");
  require(is_ratio(options.slow_ratio), "slow_ratio is not above 0 and at most 1");
  require(options.slow_call >= duration::zero(), "slow_call is negative; give 0 or more");
}

const char* breaker_core::enter(circuit_state next) noexcept {
  constexpr const char* events[] = {"closed", "opened", "half_opened", "isolated"};
  state_ = next;
  ++epoch_;
  window_.clear();
  probes_begun_ = 0;
  probed_ = {};
  return events[static_cast<std::size_t>(next)];
}

const char* breaker_core::open(time_point now) noexcept {
  opened_at_ = now;
  return enter(circuit_state::open);
}

breaker_core::admission breaker_core::admit(time_point now) {
  const std::lock_guard lock(mutex_);
  admission a;
  if (state_ == circuit_state::isolated) {
    a.rejected_for = unbounded;
  } else if (state_ == circuit_state::open) {
    const time_point until = saturating_add(opened_at_, options_.open_for);
    if (now < until) {
      a.rejected_for = until - now;
    } else {
      a.event = enter(circuit_state::half_open);
    }
  }
  if (state_ == circuit_state::half_open) {
    if (probes_begun_ < options_.probes) {
      ++probes_begun_;
    } else {
      a.rejected_for = duration::zero();
    }
  }
  a.epoch = epoch_;
  return a;
}

const char* breaker_core::ended(std::uint64_t epoch, bool failed, duration took, time_point now) {
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_) return nullptr;
  const bool slow = options_.slow_call != duration::max() && took >= options_.slow_call;
  const call_counts one{1, failed ? 1 : 0, slow ? 1 : 0};
  if (state_ == circuit_state::half_open) {
    probed_ += one;
    return judge_probes(now);
  }
  window_.add(now, one);
  const call_counts& seen = window_.total(now);
  if (seen.calls < options_.minimum_calls || !bad(seen, seen.calls)) return nullptr;
  return open(now);
}

// Decides once the remaining probes cannot change the verdict.
const char* breaker_core::judge_probes(time_point now) noexcept {
  const std::int64_t of = options_.probes;
  if (bad(probed_, of)) return open(now);
  call_counts worst = probed_;
  worst.failures += of - probed_.calls;
  worst.slow += of - probed_.calls;
  const bool may_be_slow = options_.slow_call != duration::max();
  if (reaches(worst.failures, of, options_.failure_ratio)) return nullptr;
  if (may_be_slow && reaches(worst.slow, of, options_.slow_ratio)) return nullptr;
  return enter(circuit_state::closed);
}

void breaker_core::forget(std::uint64_t epoch) noexcept {
  const std::lock_guard lock(mutex_);
  if (epoch == epoch_ && state_ == circuit_state::half_open) --probes_begun_;
}

const char* breaker_core::isolate() {
  const std::lock_guard lock(mutex_);
  return state_ == circuit_state::isolated ? nullptr : enter(circuit_state::isolated);
}

const char* breaker_core::reset() {
  const std::lock_guard lock(mutex_);
  const bool was_closed = state_ == circuit_state::closed;
  const char* event = enter(circuit_state::closed);
  return was_closed ? nullptr : event;
}

namespace {

void emit_change(const breaker_core& core, const char* event) {
  if (event != nullptr) emit_policy_event(event, core.object());
}

std::exception_ptr rejection(const breaker_core& core, duration left) {
  std::string text = "circuit open: '" + std::string(core.object()) + "' ";
  if (left == duration::max()) {
    text += "is isolated; call reset() to let calls through again";
  } else if (left == duration::zero()) {
    text += "is being tried by other calls; try again later";
  } else {
    text += "lets no call through for another " + in_words(left) + "; try again then";
  }
  return std::make_exception_ptr(circuit_open_error(text, left));
}

}  // namespace

bool breaker_call::admitted(outcome_base& out) {
  core_.require_here();
  started_ = loop::here()->now();
  const breaker_core::admission a = core_.admit(started_);
  emit_change(core_, a.event);
  if (a.rejected_for) {
    emit_policy_event("rejected", core_.object());
    out.set_error(rejection(core_, *a.rejected_for));
    return false;
  }
  epoch_ = a.epoch;
  open_ = true;
  return true;
}

void breaker_call::ended(const outcome_base& out) {
  if (out.is_cancelled()) return;  // the destructor calls forget()
  open_ = false;
  const time_point now = loop::here()->now();
  emit_change(core_, core_.ended(epoch_, out.is_error(), now - started_, now));
}

void breaker_call::forget() noexcept { core_.forget(epoch_); }

}  // namespace detail

circuit_open_error::circuit_open_error(const std::string& what, duration retry_after)
    : error(errc::circuit_open, what), retry_after_(retry_after) {}

circuit_breaker::circuit_breaker(circuit_breaker_options options)
    : core_(std::make_shared<detail::breaker_core>(options)) {}
circuit_breaker::~circuit_breaker() = default;
circuit_state circuit_breaker::state() const {
  core_->require_here();
  return core_->state();
}
void circuit_breaker::isolate() {
  core_->require_here();
  detail::emit_change(*core_, core_->isolate());
}
void circuit_breaker::reset() {
  core_->require_here();
  detail::emit_change(*core_, core_->reset());
}
std::string_view circuit_breaker::name() const noexcept { return core_->name(); }

}  // namespace weir
