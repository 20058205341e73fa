// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/transform.hpp>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/stream_op.hpp>

namespace weir {

namespace detail {

template <class F, class... Args>
using call_t = std::remove_cvref_t<std::invoke_result_t<F&, Args...>>;

/// errc::invalid_argument for a negative number of items.
std::int64_t require_count(std::int64_t count, const char* what);
/// errc::invalid_argument for a size below 1.
std::int64_t require_size(std::int64_t size, const char* what);

/// An item was skipped: returns whether the turn's budget is used up.
inline bool turn_used_up() noexcept { return --current->budget <= 0; }

/// Polls `source` and skips the items for which `keep(item)` is false.
template <class S, class T, class Keep>
pull poll_kept(S& source, std::optional<T>& out, composite& owner, Keep&& keep) {
  for (;;) {
    const pull answer = source.poll(out, owner);
    if (answer != pull::value || keep(std::as_const(*out))) return answer;
    out.reset();
    if (turn_used_up()) return pull::again;
  }
}

template <class S, class F>
class map_stage : public stage_over<S> {
 public:
  using value_type = call_t<F, value_of<S>>;
  map_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    std::optional<value_of<S>> item;
    const pull answer = this->source_.poll(item, owner);
    if (answer == pull::value) out.emplace(fn_(std::move(*item)));
    return answer;
  }

 private:
  F fn_;
};

template <class S, class F>
class filter_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  filter_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_kept(this->source_, out, owner, fn_);
  }

 private:
  F fn_;
};

template <class S, class F>
class filter_map_stage : public stage_over<S> {
 public:
  using value_type = typename call_t<F, value_of<S>>::value_type;
  filter_map_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    for (;;) {
      std::optional<value_of<S>> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer != pull::value) return answer;
      auto mapped = fn_(std::move(*item));
      if (mapped) {
        out.emplace(std::move(*mapped));
        return pull::value;
      }
      if (turn_used_up()) return pull::again;
    }
  }

 private:
  F fn_;
};

template <class S, class A, class F>
class scan_stage : public stage_over<S> {
 public:
  using value_type = A;
  scan_stage(S source, A init, F fn)
      : stage_over<S>(std::move(source)), state_(std::move(init)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    std::optional<value_of<S>> item;
    const pull answer = this->source_.poll(item, owner);
    if (answer != pull::value) return answer;
    state_ = fn_(std::move(state_), std::move(*item));
    out.emplace(state_);
    return answer;
  }

 private:
  A state_;
  F fn_;
};

template <class S>
class enumerate_stage : public stage_over<S> {
 public:
  using value_type = std::pair<std::int64_t, value_of<S>>;
  using stage_over<S>::stage_over;
  pull poll(std::optional<value_type>& out, composite& owner) {
    std::optional<value_of<S>> item;
    const pull answer = this->source_.poll(item, owner);
    if (answer == pull::value) out.emplace(next_++, std::move(*item));
    return answer;
  }

 private:
  std::int64_t next_ = 0;
};

template <class S, class F>
class tap_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  tap_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    const pull answer = this->source_.poll(out, owner);
    if (answer == pull::value) fn_(std::as_const(*out));
    return answer;
  }

 private:
  F fn_;
};

template <class S>
class dedup_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  using stage_over<S>::stage_over;
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_kept(this->source_, out, owner,
                     [&](const value_type& item) { return is_new(item); });
  }

 private:
  bool is_new(const value_type& item) {
    if (last_ && *last_ == item) return false;
    last_ = item;
    return true;
  }
  std::optional<value_type> last_;
};

template <class S, class N>
class distinct_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  distinct_stage(S source, N max)
      : stage_over<S>(std::move(source)), max_(static_cast<std::size_t>(max)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_kept(this->source_, out, owner,
                     [&](const value_type& item) { return is_new(item); });
  }

 private:
  bool is_new(const value_type& item) {
    for (std::size_t i = 0; i < seen_.size(); ++i)
      if (seen_[i] == item) return false;
    if (seen_.size() == max_) seen_.pop_front();
    seen_.push_back(item);
    return true;
  }
  std::size_t max_;
  circular_buffer<value_type> seen_;
};

template <class S, class T>
class start_with_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  start_with_stage(S source, T first)
      : stage_over<S>(std::move(source)), first_(std::move(first)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!first_) return this->source_.poll(out, owner);
    out.emplace(std::move(*first_));
    first_.reset();
    return pull::value;
  }

 private:
  std::optional<T> first_;
};

template <class S, class N>
class take_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  take_stage(S source, N count) : stage_over<S>(std::move(source)), left_(count) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (left_ == 0) return pull::end;
    const pull answer = this->source_.poll(out, owner);
    if (answer == pull::value) --left_;
    return answer;
  }

 private:
  N left_;
};

template <class S, class F>
class take_while_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  take_while_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    const pull answer = this->source_.poll(out, owner);
    if (answer != pull::value || fn_(std::as_const(*out))) return answer;
    out.reset();
    return pull::end;
  }

 private:
  F fn_;
};

template <class S, class N>
class drop_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  drop_stage(S source, N count) : stage_over<S>(std::move(source)), left_(count) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_kept(this->source_, out, owner, [&](const value_type&) {
      if (left_ == 0) return true;
      --left_;
      return false;
    });
  }

 private:
  N left_;
};

template <class S, class F>
class drop_while_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  drop_while_stage(S source, F fn) : stage_over<S>(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_kept(this->source_, out, owner, [&](const value_type& item) {
      passed_ = passed_ || !fn_(item);
      return passed_;
    });
  }

 private:
  F fn_;
  bool passed_ = false;
};

template <class S, class N>
class take_last_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  take_last_stage(S source, N count)
      : stage_over<S>(std::move(source)), count_(static_cast<std::size_t>(count)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (count_ == 0) return pull::end;
    while (!ended_) {
      std::optional<value_type> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer == pull::end) {
        ended_ = true;
        break;
      }
      if (answer != pull::value) return answer;
      if (kept_.size() == count_) kept_.pop_front();
      kept_.push_back(std::move(*item));
      if (turn_used_up()) return pull::again;
    }
    if (kept_.empty()) return pull::end;
    out.emplace(std::move(kept_.front()));
    kept_.pop_front();
    return pull::value;
  }

 private:
  std::size_t count_;
  bool ended_ = false;
  circular_buffer<value_type> kept_;
};

template <class S, class N>
class skip_last_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  skip_last_stage(S source, N count)
      : stage_over<S>(std::move(source)), count_(static_cast<std::size_t>(count)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    for (;;) {
      std::optional<value_type> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer != pull::value) return answer;
      kept_.push_back(std::move(*item));
      if (kept_.size() > count_) {
        out.emplace(std::move(kept_.front()));
        kept_.pop_front();
        return pull::value;
      }
      if (turn_used_up()) return pull::again;
    }
  }

 private:
  std::size_t count_;
  circular_buffer<value_type> kept_;
};

}  // namespace detail
}  // namespace weir
