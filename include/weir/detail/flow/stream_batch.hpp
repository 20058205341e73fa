// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/batch.hpp>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <weir/detail/flow/stream_op.hpp>
#include <weir/stream/transform.hpp>
#include <weir/time.hpp>

namespace weir {

namespace detail {

[[noreturn]] void raise_item_timeout(duration limit);
void emit_throttled(std::uint64_t dropped) noexcept;
duration require_length(duration length, const char* what);
duration require_positive(duration length, const char* what);

template <class S, class N>
class chunks_stage : public stage_over<S> {
 public:
  using value_type = std::vector<value_of<S>>;
  chunks_stage(S source, N size)
      : stage_over<S>(std::move(source)), size_(static_cast<std::size_t>(size)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    while (!ended_ && kept_.size() < size_) {
      std::optional<value_of<S>> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer == pull::end) {
        ended_ = true;
      } else if (answer != pull::value) {
        return answer;
      } else {
        kept_.push_back(std::move(*item));
        if (turn_used_up() && kept_.size() < size_) return pull::again;
      }
    }
    if (kept_.empty()) return pull::end;
    out.emplace(std::exchange(kept_, {}));
    return pull::value;
  }

 private:
  std::size_t size_;
  value_type kept_;
  bool ended_ = false;
};

/// Also emits an incomplete chunk when its first item is `limit` old.
template <class S, class N, class D>
class timed_chunks_stage : public stage_over<S> {
 public:
  using value_type = std::vector<value_of<S>>;
  static constexpr bool leaves_pending = true;
  timed_chunks_stage(S source, N size, D limit)
      : stage_over<S>(std::move(source)), size_(static_cast<std::size_t>(size)), limit_(limit) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    pull answer = pull::value;
    while (!ended_ && kept_.size() < size_ && answer == pull::value) {
      std::optional<value_of<S>> item;
      answer = this->source_.poll(item, owner);
      ended_ = answer == pull::end;
      if (answer != pull::value) break;
      if (kept_.empty()) timer_.make(ticks(saturating_add(now(), limit_)));
      kept_.push_back(std::move(*item));
      if (turn_used_up()) answer = pull::again;
    }
    if (kept_.empty()) return ended_ ? pull::end : answer;
    const bool full = ended_ || kept_.size() >= size_;
    if (!full && !timer_.poll(owner)) return answer;
    if (timer_.withdraw_all() > 0) return pull::pending;
    timer_.drop();
    out.emplace(std::exchange(kept_, {}));
    return pull::value;
  }
  unsigned withdraw_all() noexcept { return timer_.withdraw_all() + this->source_.withdraw_all(); }

 private:
  std::size_t size_;
  duration limit_;
  value_type kept_;
  wait_leaf<sleep_wait> timer_;
  bool ended_ = false;
};

template <class S, class N>
class ready_chunks_stage : public stage_over<S> {
 public:
  using value_type = std::vector<value_of<S>>;
  static constexpr bool leaves_pending = true;
  ready_chunks_stage(S source, N size)
      : stage_over<S>(std::move(source)), size_(static_cast<std::size_t>(size)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    pull answer = pull::value;
    while (!ended_ && kept_.size() < size_ && answer == pull::value) {
      std::optional<value_of<S>> item;
      answer = this->source_.poll(item, owner);
      ended_ = answer == pull::end;
      if (answer == pull::value) kept_.push_back(std::move(*item));
    }
    if (kept_.empty()) return ended_ ? pull::end : answer;
    out.emplace(std::exchange(kept_, {}));
    return pull::value;
  }

 private:
  std::size_t size_;
  value_type kept_;
  bool ended_ = false;
};

template <class S, class N>
class sliding_stage : public stage_over<S> {
 public:
  using value_type = std::vector<value_of<S>>;
  sliding_stage(S source, N size)
      : stage_over<S>(std::move(source)), size_(static_cast<std::size_t>(size)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    for (;;) {
      std::optional<value_of<S>> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer != pull::value) return answer;
      if (window_.size() == size_) window_.erase(window_.begin());
      window_.push_back(std::move(*item));
      if (window_.size() == size_) {
        out.emplace(window_);
        return answer;
      }
      if (turn_used_up()) return pull::again;
    }
  }

 private:
  std::size_t size_;
  value_type window_;
};

template <class S, class F>
class group_by_stage : public stage_over<S> {
  using key = call_t<F, const value_of<S>&>;

 public:
  using value_type = std::pair<key, std::vector<value_of<S>>>;
  group_by_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    while (!ended_) {
      std::optional<value_of<S>> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer == pull::end) {
        ended_ = true;
        break;
      }
      if (answer != pull::value) return answer;
      key found = fn_(std::as_const(*item));
      const bool same = kept_ && kept_->first == found;
      if (!same) {
        out = std::exchange(kept_, value_type(std::move(found), {}));
      }
      kept_->second.push_back(std::move(*item));
      if (out) return pull::value;
      if (turn_used_up()) return pull::again;
    }
    if (!kept_) return pull::end;
    out = std::move(kept_);
    kept_.reset();
    return pull::value;
  }

 private:
  F fn_;
  std::optional<value_type> kept_;
  bool ended_ = false;
};

template <class S, class D>
class throttle_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  throttle_stage(S source, D length) : stage_over<S>(std::move(source)), length_(length) {}
  throttle_stage(throttle_stage&&) = default;
  ~throttle_stage() { report_dropped(); }
  void shut(closing& c) {
    report_dropped();
    this->source_.shut(c);
  }
  pull poll(std::optional<value_type>& out, composite& owner) {
    const pull answer =
        poll_kept(this->source_, out, owner, [&](const value_type&) { return lets_pass(); });
    if (answer == pull::end) report_dropped();
    return answer;
  }

 private:
  bool lets_pass() {
    if (now() < open_at_) {
      ++dropped_;
      return false;
    }
    report_dropped();
    open_at_ = saturating_add(now(), length_);
    return true;
  }
  void report_dropped() noexcept {
    if (dropped_ > 0) emit_throttled(std::exchange(dropped_, 0));
  }
  duration length_;
  time_point open_at_ = time_point::min();
  std::uint64_t dropped_ = 0;
};

template <class S, class D>
class timeout_each_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  static constexpr bool leaves_pending = true;
  timeout_each_stage(S source, D limit) : stage_over<S>(std::move(source)), limit_(limit) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!timer_.made()) timer_.make(ticks(saturating_add(now(), limit_)));
    const pull answer = this->source_.poll(out, owner);
    if (answer == pull::value || answer == pull::end) {
      (void)timer_.withdraw_all();  // the next item has its own limit; a sleep ends at once
      timer_.drop();
      return answer;
    }
    if (timer_.poll(owner)) raise_item_timeout(limit_);
    return answer;
  }
  // The limit applies to one pull: the next pull starts a new timer.
  unsigned withdraw_all() noexcept {
    (void)timer_.withdraw_all();
    timer_.drop();
    return this->source_.withdraw_all();
  }

 private:
  duration limit_;
  wait_leaf<sleep_wait> timer_;
};

}  // namespace detail
}  // namespace weir
