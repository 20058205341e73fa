// SPDX-License-Identifier: MIT
#include <weir/every.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/toolkit/policy_event.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

// ------------------------------------------------------------------ schedule

ticker::ticker(duration interval, every_options options)
    : interval_(interval), fixed_rate_(options.fixed_rate) {
  if (interval <= duration::zero())
    raise(errc::invalid_argument,
          "every: the interval is " + std::to_string(interval.count()) + " ns; give one above 0");
}

pending<tick_wait> ticker::next() {
  if (!stopped()) {
    // A run that did not suspend may have taken long since the clock was last read.
    const time_point now = loop::here()->fresh_now();
    if (fixed_rate_ && begun_) {
      due_ = saturating_add(due_, interval_);
      if (due_ < now) skip_missed(now);
    } else {
      due_ = saturating_add(now, interval_);
    }
    begun_ = true;
  }
  return pending<tick_wait>({due_, control_.get()});
}

// A start due at exactly `now` is not missed.
void ticker::skip_missed(time_point now) {
  const auto missed = (now - due_ - duration(1)) / interval_ + 1;
  due_ = saturating_add(due_, missed * interval_);
  emit_policy_event("every_skipped", "every", static_cast<std::uint64_t>(missed));
}

verdict every_region::judge(outcome_base& out) {
  if (!out.is_error()) return judge_region(*this, out);
  cancel_tree::leave(*current, *this);
  return {};
}

void tick_wait::arm() {
  if (control_ != nullptr) control_->sleeping = this;
  sleep_wait::arm();
}

cancel_result tick_wait::withdraw() noexcept {
  leave();
  return sleep_wait::withdraw();
}

void tick_wait::describe(dump_line& line) const {
  line.add("every, ");
  sleep_wait::describe(line);
}

void tick_wait::wake() noexcept {
  if (!armed()) return;  // already due
  (void)withdraw();
  complete();
}

// ------------------------------------------------------------------ waiting for the end

bool every_wait::try_now() noexcept {
  if (!begun_) {
    refused_ = control_->waited;
    if (refused_) return true;
    begun_ = control_->waited = true;
  }
  return future_wait::try_now();
}

void every_wait::describe(dump_line& line) const { line.add("the end of every"); }

const reason_ref* every_wait::cancelled_by() const noexcept {
  if (control_->parent_reason) return &control_->parent_reason;
  if (control_->stopped || !core().result().is_cancelled()) return nullptr;
  return &core().result().reason_reference();
}

bool every_wait::failed() const noexcept {
  return refused_ || core().result().is_error() || cancelled_by() != nullptr;
}

void every_wait::take() {
  if (refused_)
    raise(errc::already_waited,
          "wait of a periodic job was begun before; a periodic job is waited for once");
  const outcome_base& out = observed();
  if (out.is_error()) out.rethrow_problem();
  if (const reason_ref* why = cancelled_by()) raise_cancelled(**why);
}

// ------------------------------------------------------------------ the handle

every_handle every_start::begin(scope& s, task<> loop, every_control_ref control,
                                std::source_location site) {
  s.require_open("start_every");
  fiber* made = scope::make(std::move(loop));
  made->isolated = true;
  // A cancelled scope still accepts services, but a periodic job would start only to be cancelled.
  const auto how = s.cancel_requested() ? scope::launch::ordinary : scope::launch::background;
  core_ref job = core_ref::adopt(s.adopt(made, {.name = "every"}, site, how));
  return every_handle(std::move(job), std::move(control));
}

}  // namespace detail

namespace {

void require_handle(const detail::core_ref& job) {
  if (job.get() == nullptr)
    detail::raise(errc::invalid_argument, "empty handle of a periodic job: it was moved from");
  detail::require_future_home(*job.get());
}

}  // namespace

every_handle::~every_handle() {
  if (job_.get() == nullptr || detail::in_dead_world()) return;
  // On another thread nothing is touched; releasing the job there reports the error.
  if (job_.get()->home == detail::current_loop_serial()) stop_now();
}

void every_handle::stop() {
  require_handle(job_);
  stop_now();
}

void every_handle::stop_now() noexcept {
  auto& f = static_cast<detail::fiber&>(*job_.get());
  if (f.ended || control_->stopped) return;
  control_->stopped = true;
  // If a cancellation came before stop(), wait() reports that.
  const detail::reason_ref& own = detail::cancel_tree::reason(f);
  control_->parent_reason =
      own ? own : detail::cancel_tree::reason(detail::cancel_tree::scope_of(f));
  if (control_->sleeping != nullptr) control_->sleeping->wake();
}

detail::pending<detail::every_wait> every_handle::wait() const {
  require_handle(job_);
  detail::require_fiber("wait");
  const context* job = static_cast<detail::fiber*>(job_.get());
  for (const context* c = detail::current->top; c != nullptr; c = detail::cancel_tree::parent(*c))
    if (c == job)
      detail::raise(errc::would_deadlock,
                    "wait of a periodic job called from the job itself, which would wait for "
                    "itself");
  return detail::pending<detail::every_wait>({job_, control_});
}

}  // namespace weir
