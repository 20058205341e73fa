// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/rate.hpp>.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/collecting_pump.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/event.hpp>
#include <weir/overflow.hpp>
#include <weir/stream/batch.hpp>
#include <weir/time.hpp>

namespace weir {

namespace detail {

/// The event `dropped`: a stage dropped `count` items.
void emit_dropped(const char* object, std::uint64_t count) noexcept;
overflow require_buffer_policy(overflow policy);

/// The common part of the rate stages: the child gives each item to `State::arrived(item)`, and
/// `State::give` may wait for a time.
template <class S, class State>
class rate_state : public collecting_pump<S, State> {
 public:
  using value_type = value_of<S>;

  using collecting_pump<S, State>::collecting_pump;

  void collect(value_type&& item) {
    static_cast<State&>(*this).arrived(std::move(item));
    this->news.notify();
  }
  unsigned withdraw_all() noexcept { return pump_base::withdraw_all() + timer_.withdraw_all(); }
  void clear() const noexcept {}

 protected:
  /// Whether `at` has passed; if not, `owner` is notified then, or when an item arrives or the
  /// child ends.
  bool due(time_point at, composite& owner) {
    if (now() >= at) {
      timer_.withdraw_all();
      timer_.drop();
      return true;
    }
    if (timer_.made() && at != timer_at_) {
      timer_.withdraw_all();
      timer_.drop();
    }
    if (!timer_.made()) {
      timer_.make(ticks(at));
      timer_at_ = at;
    }
    if (timer_.poll(owner)) {
      timer_.drop();
      return true;
    }
    if (!this->fed()) this->news.wait_for(owner);
    return false;
  }

 private:
  time_point timer_at_{};
  wait_leaf<sleep_wait> timer_;
};

template <class S>
class buffer_state : public rate_state<S, buffer_state<S>> {
 public:
  buffer_state(S stage, std::int64_t capacity, overflow policy)
      : rate_state<S, buffer_state<S>>(std::move(stage)),
        capacity_(static_cast<std::size_t>(capacity)),
        policy_(policy) {}
  /// With `wait`, the child pulls only when there is room.
  auto room() {
    if (policy_ != overflow::wait || kept_.size() < capacity_) {
      room_.set();
    } else {
      room_.reset();
    }
    return room_.wait();
  }
  void arrived(value_of<S>&& item) {
    if (kept_.size() == capacity_) {
      ++dropped_;
      if (policy_ == overflow::drop_newest) return;
      if (policy_ == overflow::conflate) {
        dropped_ += kept_.size() - 1;
        kept_.clear();
      } else {
        kept_.pop_front();
      }
    }
    kept_.push_back(std::move(item));
  }
  pull give(std::optional<value_of<S>>& out, composite&) {
    if (dropped_ > 0) emit_dropped("buffer", std::exchange(dropped_, 0));
    if (kept_.empty()) return pull::end;
    out.emplace(std::move(kept_.front()));
    kept_.pop_front();
    room_.set();
    return pull::value;
  }

 private:
  std::size_t capacity_;
  overflow policy_;
  circular_buffer<value_of<S>> kept_;
  std::uint64_t dropped_ = 0;
  event room_;
};

template <class S, class F>
class conflate_state : public rate_state<S, conflate_state<S, F>> {
 public:
  conflate_state(S stage, F fn)
      : rate_state<S, conflate_state<S, F>>(std::move(stage)), fn_(std::move(fn)) {}
  void arrived(value_of<S>&& item) {
    if (kept_) {
      value_of<S> before = std::move(*kept_);
      kept_.reset();  // if fn throws, no moved-from item is left
      kept_.emplace(fn_(std::move(before), std::move(item)));
    } else {
      kept_.emplace(std::move(item));
    }
  }
  pull give(std::optional<value_of<S>>& out, composite&) {
    if (!kept_) return pull::end;
    out = std::move(kept_);
    kept_.reset();
    return pull::value;
  }

 private:
  F fn_;
  std::optional<value_of<S>> kept_;
};

template <class S>
class sample_state : public rate_state<S, sample_state<S>> {
 public:
  sample_state(S stage, duration every)
      : rate_state<S, sample_state<S>>(std::move(stage)), every_(every) {}
  // An item that arrives between two ticks is delivered at the next tick, or by the first pull
  // after it.
  void arrived(value_of<S>&& item) {
    if (!latest_) tick_ = tick_after(now());
    latest_.emplace(std::move(item));
  }
  pull give(std::optional<value_of<S>>& out, composite& owner) {
    if (!start_) start_ = now();  // the first pull
    if (!latest_) return pull::end;
    if (!this->due(tick_, owner)) return pull::pending;
    out = std::move(latest_);
    latest_.reset();
    return pull::value;
  }

 private:
  time_point tick_after(time_point at) const noexcept {
    return saturating_add(*start_ + (at - *start_) / every_ * every_, every_);
  }
  duration every_;
  std::optional<time_point> start_;
  time_point tick_{};  // of latest_
  std::optional<value_of<S>> latest_;
};

template <class S>
class debounce_state : public rate_state<S, debounce_state<S>> {
 public:
  debounce_state(S stage, duration quiet)
      : rate_state<S, debounce_state<S>>(std::move(stage)), quiet_(quiet) {}
  void arrived(value_of<S>&& item) {
    latest_.emplace(std::move(item));
    at_ = saturating_add(now(), quiet_);
  }
  pull give(std::optional<value_of<S>>& out, composite& owner) {
    if (!latest_) return pull::end;
    if (!this->fed() && !this->due(at_, owner)) return pull::pending;
    out = std::move(latest_);
    latest_.reset();
    return pull::value;
  }

 private:
  duration quiet_;
  time_point at_{};
  std::optional<value_of<S>> latest_;
};

template <class S>
class delay_state : public rate_state<S, delay_state<S>> {
 public:
  delay_state(S stage, duration by) : rate_state<S, delay_state<S>>(std::move(stage)), by_(by) {}
  void arrived(value_of<S>&& item) {
    kept_.push_back(late(saturating_add(now(), by_), std::move(item)));
  }
  pull give(std::optional<value_of<S>>& out, composite& owner) {
    if (kept_.empty()) return pull::end;
    if (!this->due(kept_.front().at, owner)) return pull::pending;
    out.emplace(std::move(kept_.front().item));
    kept_.pop_front();
    return pull::value;
  }

 private:
  struct late {
    late(time_point t, value_of<S>&& v) : at(t), item(std::move(v)) {}
    time_point at;
    value_of<S> item;
  };
  duration by_;
  circular_buffer<late> kept_;
};

template <class S, class N, class P>
using buffer_stage = pump_stage<buffer_state<S>>;
template <class S, class F>
using conflate_stage = pump_stage<conflate_state<S, F>>;
template <class S, class D>
using sample_stage = pump_stage<sample_state<S>>;
template <class S, class D>
using debounce_stage = pump_stage<debounce_state<S>>;
template <class S, class D>
using delay_stage = pump_stage<delay_state<S>>;

}  // namespace detail
}  // namespace weir
