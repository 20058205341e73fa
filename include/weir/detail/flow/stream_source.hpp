// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/source.hpp>.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <weir/channel.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/queue.hpp>
#include <weir/time.hpp>

namespace weir {

namespace detail {

/// A range that is owned, or referred to (`Range` is a reference).
template <class Range>
class range_stage : public ready_stage {
  using iterator = decltype(std::begin(std::declval<std::remove_reference_t<Range>&>()));
  using sentinel = decltype(std::end(std::declval<std::remove_reference_t<Range>&>()));

 public:
  using value_type = std::remove_cvref_t<decltype(*std::declval<iterator&>())>;
  explicit range_stage(Range&& range) : range_(std::forward<Range>(range)) {}
  // Iterators are created at the first pull; until then it may be moved.
  range_stage(range_stage&& other) noexcept : range_(std::forward<Range>(other.range_)) {}
  pull poll(std::optional<value_type>& out, composite&) {
    if (!at_) {
      at_.emplace(std::begin(range_));
      end_.emplace(std::end(range_));
    }
    if (*at_ == *end_) return pull::end;
    if constexpr (std::is_reference_v<Range> || !std::is_lvalue_reference_v<decltype(**at_)>) {
      out.emplace(**at_);
    } else {
      out.emplace(std::move(const_cast<value_type&>(static_cast<const value_type&>(**at_))));
    }
    ++*at_;
    return pull::value;
  }

 private:
  Range range_;
  std::optional<iterator> at_;
  std::optional<sentinel> end_;
};

template <class T>
class iota_stage : public ready_stage {
 public:
  using value_type = T;
  iota_stage(T first, std::optional<T> end) : next_(std::move(first)), end_(std::move(end)) {}
  pull poll(std::optional<T>& out, composite&) {
    if (end_ && !(next_ < *end_)) return pull::end;
    out.emplace(next_);
    ++next_;
    return pull::value;
  }

 private:
  T next_;
  std::optional<T> end_;
};

template <class State, class F>
class unfold_stage : public ready_stage {
 public:
  using value_type =
      typename std::remove_cvref_t<std::invoke_result_t<F&, State>>::value_type::first_type;
  unfold_stage(State seed, F fn) : state_(std::move(seed)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite&) {
    auto step = fn_(std::move(state_));
    if (!step) return pull::end;
    state_ = std::move(step->second);
    out.emplace(std::move(step->first));
    return pull::value;
  }

 private:
  State state_;
  F fn_;
};

template <class T>
class once_stage : public ready_stage {
 public:
  using value_type = T;
  explicit once_stage(std::optional<T> value) : value_(std::move(value)) {}
  pull poll(std::optional<T>& out, composite&) {
    if (!value_) return pull::end;
    out.emplace(std::move(*value_));
    value_.reset();
    return pull::value;
  }

 private:
  std::optional<T> value_;
};

template <class T>
class never_stage : public ready_stage {
 public:
  using value_type = T;
  pull poll(std::optional<T>&, composite&) const noexcept { return pull::pending; }
  void describe(dump_line& line) const { describe_never(line); }

 private:
  static void describe_never(dump_line& line);
};
void describe_never_stream(dump_line& line);
template <class T>
void never_stage<T>::describe_never(dump_line& line) {
  describe_never_stream(line);
}

/// 0, 1, 2, ... on a grid that starts with the first pull.
class interval_stage {
 public:
  using value_type = std::int64_t;
  static constexpr bool leaves_pending = false;
  explicit interval_stage(duration every);
  pull poll(std::optional<std::int64_t>& out, composite& owner);
  unsigned withdraw_all() noexcept { return tick_.withdraw_all(); }
  void shut(closing&) noexcept { tick_.drop(); }
  void describe(dump_line& line) const { tick_.describe(line); }

 private:
  duration every_;
  std::int64_t next_ = 0;
  std::optional<time_point> due_;
  wait_leaf<sleep_wait> tick_;
};

/// The values of a queue, a channel or a subscription: one wait, which is reused.
template <class T, class W>
class wait_stage {
 public:
  using value_type = T;
  static constexpr bool leaves_pending = false;
  explicit wait_stage(typename W::args from) noexcept : from_(from) {}
  pull poll(std::optional<T>& out, composite& owner) {
    if (!next_.made()) next_.make(from_);
    if (!next_.poll(owner)) return pull::pending;
    out = next_.take();
    return out ? pull::value : pull::end;
  }
  unsigned withdraw_all() noexcept { return next_.withdraw_all(); }
  void shut(closing&) noexcept { drop(); }
  void describe(dump_line& line) const { next_.describe(line); }

 protected:
  void drop() noexcept { next_.drop(); }

 private:
  typename W::args from_;
  wait_leaf<W> next_;
};

/// The same, but it also owns what the wait refers to, until the stream ends.
template <class T, class W, class Owner>
class owning_wait_stage : public wait_stage<T, W> {
 public:
  owning_wait_stage(Owner owner, typename W::args from) noexcept
      : wait_stage<T, W>(from), owner_(std::move(owner)) {}
  owning_wait_stage(owning_wait_stage&&) noexcept = default;
  ~owning_wait_stage() { this->drop(); }
  void shut(closing&) noexcept {
    this->drop();
    owner_.reset();
  }

 private:
  std::optional<Owner> owner_;
};

template <class F>
class defer_stage {
  using made = std::remove_cvref_t<std::invoke_result_t<F&>>;

 public:
  using value_type = typename made::value_type;
  static constexpr bool leaves_pending = made::leaves_pending;
  explicit defer_stage(F fn) : fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!stream_) stream_.emplace(fn_());
    return stream_->poll(out, owner);
  }
  unsigned withdraw_all() noexcept { return stream_ ? stream_->withdraw_all() : 0; }
  void shut(closing& c) {
    if (stream_) stream_->shut(c);
  }
  void describe(dump_line& line) const {
    if (stream_) stream_->describe(line);
  }

 private:
  F fn_;
  std::optional<made> stream_;
};

class lines_stage : public ready_stage {
 public:
  using value_type = std::string;
  explicit lines_stage(std::istream& in) noexcept : in_(&in) {}
  pull poll(std::optional<std::string>& out, composite&);

 private:
  std::istream* in_;
};

template <class R>
concept iterable = requires(std::remove_reference_t<R>& r) {
  std::begin(r);
  std::end(r);
};

}  // namespace detail
}  // namespace weir
