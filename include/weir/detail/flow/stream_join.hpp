// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/join.hpp>.
#pragma once

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/stream/transform.hpp>

namespace weir {

namespace detail {

/// A stream inside another one: closed when it has ended, before its owner continues.
template <class P>
using inner_stream = weir::pipeline<stage_of<P>>;

template <class P>
auto as_inner(P&& stream) {
  return make_pipeline(stage_from(std::forward<P>(stream)));
}

/// A stage over a source that also pulls a part of its own, which comes and goes. It is moved only
/// before the first pull, when there is no part.
template <class S, class Part>
class stage_with : public stage_over<S> {
 public:
  explicit stage_with(S source) : stage_over<S>(std::move(source)) {}
  stage_with(stage_with&& other) : stage_over<S>(std::move(other)) {}
  unsigned withdraw_all() noexcept {
    return (part_ ? part_->withdraw_all() : 0) + this->source_.withdraw_all();
  }
  void shut(closing& c) {
    if (part_) part_->shut(c);
    this->source_.shut(c);
  }

 protected:
  ~stage_with() = default;
  std::optional<Part> part_;
};

template <class S, class F>
class flat_map_stage : public stage_with<S, inner_stream<call_t<F, value_of<S>>>> {
  using inner = inner_stream<call_t<F, value_of<S>>>;
  using base = stage_with<S, inner>;
  using base::part_;

 public:
  using value_type = typename inner::value_type;
  static constexpr bool leaves_pending = S::leaves_pending || inner::leaves_pending;
  flat_map_stage(S source, F fn) : base(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    for (;;) {
      if (part_) {
        const pull answer = part_->poll(out, owner);
        if (answer != pull::end) return answer;
        part_.reset();
        if (turn_used_up()) return pull::again;
      }
      std::optional<value_of<S>> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer != pull::value) return answer;
      part_.emplace(as_inner(fn_(std::move(*item))));
    }
  }
  void describe(dump_line& line) const {
    if (part_) return part_->describe(line);
    this->source_.describe(line);
  }

 private:
  F fn_;
};

struct identity_fn {
  template <class T>
  T operator()(T&& value) const {
    return std::forward<T>(value);
  }
};

template <class S, class F>
class switch_map_stage : public stage_with<S, inner_stream<call_t<F, value_of<S>>>> {
  using inner = inner_stream<call_t<F, value_of<S>>>;
  using base = stage_with<S, inner>;
  using base::part_;

 public:
  using value_type = typename inner::value_type;
  static constexpr bool leaves_pending = true;
  switch_map_stage(S source, F fn) : base(std::move(source)), fn_(std::move(fn)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    for (;;) {
      if (leaving_) {  // the previous inner stream is closed first
        if (part_->poll_close(owner) != pull::end) return pull::pending;
        part_.reset();
        leaving_ = false;
      }
      if (!item_ && !ended_) {
        const pull answer = this->source_.poll(item_, owner);
        if (answer == pull::again) return answer;
        ended_ = answer == pull::end;
      }
      if (item_) {
        leaving_ = part_.has_value();
        if (leaving_) continue;
        part_.emplace(as_inner(fn_(std::move(*item_))));
        item_.reset();
        if (turn_used_up()) return pull::again;
        continue;
      }
      if (!part_) return ended_ ? pull::end : pull::pending;
      const pull answer = part_->poll(out, owner);
      if (answer != pull::end) return answer;
      part_.reset();
    }
  }
  void describe(dump_line& line) const {
    if (part_) part_->describe(line);
    if (ended_) return;
    if (part_) add_words(line, ", ");
    this->source_.describe(line);
  }

 private:
  F fn_;
  std::optional<value_of<S>> item_;
  bool leaving_ = false;
  bool ended_ = false;
};

// ------------------------------------------------------------------ several streams

/// The dump line of a stage over several streams: those that have ended are omitted.
template <class Part>
void describe_part(dump_line& line, const char*& before, const Part& one) {
  if (one.has_ended()) return;
  add_words(line, before);
  one.describe(line);
  before = ", ";
}

/// Calls `fn` for each stream of a tuple, in order, until it returns false.
template <class Tuple, class F>
bool each_of(Tuple& streams, F&& fn) {
  return std::apply([&](auto&... one) { return (fn(one) && ...); }, streams);
}

/// The common part of stages over several streams. Each stream is closed when it has ended.
template <class... S>
class stage_over_all {
 public:
  explicit stage_over_all(S... sources) : sources_(weir::pipeline<S>(std::move(sources))...) {}
  unsigned withdraw_all() noexcept {
    unsigned leaving = 0;
    each_of(sources_, [&](auto& one) {
      leaving += one.withdraw_all();
      return true;
    });
    return leaving;
  }
  void shut(closing& c) {
    each_of(sources_, [&](auto& one) {
      one.shut(c);
      return true;
    });
  }
  void describe(dump_line& line) const {
    const char* before = "";
    std::apply([&](const auto&... one) { (describe_part(line, before, one), ...); }, sources_);
  }

 protected:
  static constexpr std::size_t count = sizeof...(S);
  std::tuple<weir::pipeline<S>...> sources_;
};

template <class First, class... Rest>
class concat_stage : public stage_over_all<First, Rest...> {
 public:
  using value_type = value_of<First>;
  static constexpr bool leaves_pending = First::leaves_pending || (Rest::leaves_pending || ...);
  using stage_over_all<First, Rest...>::stage_over_all;
  pull poll(std::optional<value_type>& out, composite& owner) {
    std::size_t index = 0;
    pull answer = pull::end;
    each_of(this->sources_, [&](auto& one) {
      if (index++ < at_) return true;
      answer = one.poll(out, owner);
      if (answer == pull::end) ++at_;
      return answer == pull::end;
    });
    return answer;
  }
  void describe(dump_line& line) const {
    std::size_t index = 0;
    each_of(this->sources_, [&](const auto& one) {
      if (index++ < at_) return true;
      one.describe(line);
      return false;
    });
  }

 private:
  std::size_t at_ = 0;
};

template <class First, class... Rest>
class merge_stage : public stage_over_all<First, Rest...> {
  static constexpr std::size_t count = sizeof...(Rest) + 1;

 public:
  using value_type = value_of<First>;
  static constexpr bool leaves_pending = true;
  using stage_over_all<First, Rest...>::stage_over_all;
  // Starts after the stream that gave the last item, so that none starves.
  pull poll(std::optional<value_type>& out, composite& owner) {
    bool again = false;
    for (int round = 0; round < 2; ++round) {
      std::size_t index = 0;
      bool found = !each_of(this->sources_, [&](auto& one) {
        const std::size_t i = index++;
        if ((i < next_) != (round == 1) || ended_[i]) return true;
        const pull answer = one.poll(out, owner);
        if (answer == pull::again) again = true;
        if (answer == pull::end) ended_[i] = true;
        if (answer == pull::value) next_ = i + 1 == count ? 0 : i + 1;
        return answer != pull::value;
      });
      if (found) return pull::value;
    }
    if (again) return pull::again;
    for (const bool ended : ended_)
      if (!ended) return pull::pending;
    return pull::end;
  }

 private:
  std::size_t next_ = 0;
  bool ended_[count] = {};
};

template <class... S>
class zip_stage : public stage_over_all<S...> {
 public:
  using value_type = std::tuple<value_of<S>...>;
  static constexpr bool leaves_pending = true;
  using stage_over_all<S...>::stage_over_all;
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_all(out, owner, std::index_sequence_for<S...>{});
  }
  void describe(dump_line& line) const { describe_missing(line, std::index_sequence_for<S...>{}); }

 private:
  template <std::size_t... I>
  void describe_missing(dump_line& line, std::index_sequence<I...>) const {
    const char* before = "";
    ((std::get<I>(items_) ? void() : describe_part(line, before, std::get<I>(this->sources_))),
     ...);
  }
  template <std::size_t... I>
  pull poll_all(std::optional<value_type>& out, composite& owner, std::index_sequence<I...>) {
    pull worst = pull::value;
    const auto one = [&](auto& source, auto& item) {
      if (item) return true;
      const pull answer = source.poll(item, owner);
      if (answer == pull::end) return false;
      if (answer != pull::value && worst != pull::again) worst = answer;
      return true;
    };
    if (!(one(std::get<I>(this->sources_), std::get<I>(items_)) && ...)) return pull::end;
    if (worst != pull::value) return worst;
    out.emplace(std::move(*std::get<I>(items_))...);
    (std::get<I>(items_).reset(), ...);
    return pull::value;
  }
  std::tuple<std::optional<value_of<S>>...> items_;
};

template <class... S>
class combine_latest_stage : public stage_over_all<S...> {
  static constexpr std::size_t count = sizeof...(S);

 public:
  using value_type = std::tuple<value_of<S>...>;
  static constexpr bool leaves_pending = true;
  using stage_over_all<S...>::stage_over_all;
  pull poll(std::optional<value_type>& out, composite& owner) {
    return poll_all(out, owner, std::index_sequence_for<S...>{});
  }

 private:
  template <std::size_t... I>
  pull poll_all(std::optional<value_type>& out, composite& owner, std::index_sequence<I...>) {
    for (;;) {
      bool news = false, again = false, waits = false, hopeless = false;
      const auto one = [&](auto& source, auto& latest, std::size_t i) {
        bool& ended = ended_[i];
        if (ended || news) return;
        std::remove_reference_t<decltype(latest)> item;
        const pull answer = source.poll(item, owner);
        if (answer == pull::value) {
          latest = std::move(item);
          news = true;
          next_ = i + 1 == count ? 0 : i + 1;
        }
        again = again || answer == pull::again;
        waits = waits || answer == pull::pending;
        ended = answer == pull::end;
        hopeless = hopeless || (ended && !latest);
      };
      // Starts after the stream that gave the last item, as merge does.
      const std::size_t first = next_;
      const auto from_to = [&](std::size_t begin, std::size_t end) {
        ((I >= begin && I < end ? one(std::get<I>(this->sources_), std::get<I>(latest_), I)
                                : void()),
         ...);
      };
      from_to(first, count);
      from_to(0, first);
      if (hopeless) return pull::end;
      if (news && (std::get<I>(latest_).has_value() && ...)) {
        out.emplace(*std::get<I>(latest_)...);
        return pull::value;
      }
      if (again || (news && turn_used_up())) return pull::again;
      if (news) continue;
      return waits ? pull::pending : pull::end;
    }
  }
  std::tuple<std::optional<value_of<S>>...> latest_;
  bool ended_[count] = {};
  std::size_t next_ = 0;
};

template <class First, class... Rest>
class race_streams_stage : public stage_over_all<First, Rest...> {
 public:
  using value_type = value_of<First>;
  static constexpr bool leaves_pending = true;
  using stage_over_all<First, Rest...>::stage_over_all;
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!winner_) return first_item(out, owner);
    if (!losers_closed_) {
      if (!close_losers(owner)) return pull::pending;
      losers_closed_ = true;
      if (kept_) {
        out = std::move(kept_);
        kept_.reset();
        return pull::value;
      }
    }
    std::size_t index = 0;
    pull answer = pull::end;
    each_of(this->sources_, [&](auto& one) {
      if (index++ != *winner_) return true;
      answer = one.poll(out, owner);
      return false;
    });
    return answer;
  }

 private:
  pull first_item(std::optional<value_type>& out, composite& owner) {
    std::size_t index = 0;
    bool again = false;
    each_of(this->sources_, [&](auto& one) {
      const pull answer = one.poll(kept_, owner);
      again = again || answer == pull::again;
      if (answer == pull::value || answer == pull::end) winner_ = index;
      ++index;
      return !winner_;
    });
    if (winner_) return poll(out, owner);
    return again ? pull::again : pull::pending;
  }
  bool close_losers(composite& owner) {
    std::size_t index = 0;
    bool quiet = true;
    each_of(this->sources_, [&](auto& one) {
      if (index++ == *winner_) return true;
      quiet = one.poll_close(owner) == pull::end && quiet;
      return true;
    });
    return quiet;
  }
  std::optional<std::size_t> winner_;
  std::optional<value_type> kept_;
  bool losers_closed_ = false;
};

template <class S, class O>
class with_latest_stage : public stage_over<S> {
 public:
  using value_type = std::tuple<value_of<S>, value_of<O>>;
  static constexpr bool leaves_pending = true;
  with_latest_stage(S source, O other)
      : stage_over<S>(std::move(source)), other_(std::move(other)) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    bool again = false;
    for (bool more = !ended_; more;) {
      std::optional<value_of<O>> item;
      const pull answer = other_.poll(item, owner);
      more = answer == pull::value;
      if (more) latest_ = std::move(item);
      ended_ = answer == pull::end;
      again = answer == pull::again || (more && turn_used_up());
      more = more && !again;
    }
    for (;;) {
      std::optional<value_of<S>> item;
      const pull answer = this->source_.poll(item, owner);
      if (answer == pull::value && latest_) {
        out.emplace(std::move(*item), *latest_);
        return answer;
      }
      if (answer == pull::pending && again) return pull::again;
      if (answer != pull::value) return answer;
      if (turn_used_up()) return pull::again;
    }
  }
  unsigned withdraw_all() noexcept { return this->source_.withdraw_all() + other_.withdraw_all(); }
  void shut(closing& c) {
    this->source_.shut(c);
    other_.shut(c);
  }
  void describe(dump_line& line) const {
    const char* before = ", ";
    this->source_.describe(line);
    describe_part(line, before, other_);
  }

 private:
  weir::pipeline<O> other_;
  std::optional<value_of<O>> latest_;
  bool ended_ = false;
};

/// Awaits an operation and drops its value.
template <class Op>
task<> await_and_drop(Op op) {
  (void)co_await detail::as_task(op, this_context());
}

template <class S, class Op>
class take_until_stage : public stage_with<S, task_leaf> {
  using base = stage_with<S, task_leaf>;
  using base::part_;

 public:
  using value_type = value_of<S>;
  static constexpr bool leaves_pending = true;
  take_until_stage(S source, Op op)
      : base(std::move(source)), op_(std::move(op)), await_(&await_and_drop<Op>) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!part_) part_.emplace(await_(std::move(op_)));
    if (part_->poll(owner) == pull::end) return pull::end;
    return this->source_.poll(out, owner);
  }
  void describe(dump_line& line) const {
    this->source_.describe(line);
    if (!part_) return;
    add_words(line, ", until ");
    part_->describe(line);
  }

 private:
  Op op_;
  task<> (*await_)(Op);  // a pointer, as in pump_stage
};

}  // namespace detail
}  // namespace weir
