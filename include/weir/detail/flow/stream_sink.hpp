// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/sink.hpp>.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/detail/core/arms.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/policy/settle.hpp>
#include <weir/stream/transform.hpp>

namespace weir {

namespace detail {

/// Pulls a stream and passes each item to `step` until that returns false; a loop inside one await.
template <class S, class F>
class drain_wait_of : public pull_wait {
 public:
  struct args {
    weir::pipeline<S>* of;
    F* step;
  };
  using result = void;
  explicit drain_wait_of(args&& a) noexcept : of_(a.of), step_(a.step) {}
  bool try_now() {
    const pull answer = drain();
    if (answer == pull::end) {
      armed_ = armed_ || S::leaves_pending;
      return settle();
    }
    note_polled(answer);
    return false;
  }
  void describe(dump_line& line) const override {
    describe_pull(line);
    if (is_polled()) of_->describe(line);
  }
  void take() const { rethrow(); }

 private:
  pull poll_stages() override { return drain(); }
  pull drain() {
    try {
      for (;;) {
        std::optional<value_of<S>> item;
        const pull answer = of_->poll(item, *this);
        if (answer != pull::value) return answer;
        if (!(*step_)(std::move(*item))) return pull::end;
        if (turn_used_up()) return pull::again;
      }
    } catch (...) {
      fail(std::current_exception());
      return pull::end;
    }
  }
  unsigned stand_down_stages() noexcept override { return of_->withdraw_all(); }
  turn_slot& own_turn() override { return turn_; }
  weir::pipeline<S>* of_;
  F* step_;
  turn_slot turn_;
};

/// Runs `body(source)` and then closes the stream, even if the consumer is cancelled.
template <class R, class S, class Body>
struct consume {
  static task<R> run(S stage, Body body) {
    weir::pipeline<S> source(std::move(stage));
    auto work = [&] { return body(source); };
    auto close = [&] { return source.close(); };
    using around = finally_region<decltype(close)>;
    co_return co_await run_region<R, around, decltype(work)&>(typename around::setup(close), work);
  }
};

/// Passes each item to `step` until it returns false; `step` returns bool or task<bool>.
template <class S, class F>
struct for_all_items {
  static task<> run(weir::pipeline<S>& source, F& step) {
    if constexpr (is_task<std::invoke_result_t<F&, value_of<S>>>) {
      for (bool more = true; more;) {
        auto item = co_await source.next();
        if (!item) break;
        more = co_await step(std::move(*item));
      }
    } else {
      co_await pending<drain_wait_of<S, F>>({&source, &step});
    }
  }
};

template <class T>
struct plain_or_task {
  using type = T;
};
template <class T>
struct plain_or_task<task<T>> {
  using type = T;
};
/// The result of a callback, direct or of the task it returns.
template <class F, class... Args>
using final_t =
    typename plain_or_task<std::remove_cvref_t<std::invoke_result_t<F&, Args...>>>::type;

/// A step made of a callback, which may return a task, and of `then`, which gets the item and the
/// callback's result and returns whether to continue.
template <class T, class F, class Then>
struct callback_step {
  F* fn;
  Then* then;
  auto operator()(T&& item) {
    if constexpr (is_task<std::invoke_result_t<F&, T&>>) {
      return wait_for(*this, std::move(item));
    } else if constexpr (std::is_void_v<std::invoke_result_t<F&, T&>>) {
      (*fn)(item);
      return (*then)(item, unit{});
    } else {
      return (*then)(item, (*fn)(item));
    }
  }
  static task<bool> wait_for(callback_step self, T item) {
    if constexpr (std::is_void_v<final_t<F, T&>>) {
      co_await (*self.fn)(item);
      co_return (*self.then)(item, unit{});
    } else {
      co_return (*self.then)(item, co_await (*self.fn)(item));
    }
  }
};

template <class S, class F, class Then>
task<> each_with(weir::pipeline<S>& source, F& fn, Then& then) {
  callback_step<value_of<S>, F, Then> step{&fn, &then};
  co_await for_all_items<S, decltype(step)>::run(source, step);
}

/// A sink: `Body::walk(source, args...)` is its task.
template <class S, class Body, class... Args>
struct sink_task {
  using result = typename Body::result;
  struct call {
    std::tuple<Args...> args;
    task<result> operator()(weir::pipeline<S>& source) {
      return std::apply([&](Args&... a) { return Body::walk(source, a...); }, args);
    }
  };
  static task<result> run(S source, Args... args) {
    return consume<result, S, call>::run(std::move(source),
                                         call{std::tuple<Args...>(std::move(args)...)});
  }
};

template <class S>
struct to_vector_body {
  using result = std::vector<value_of<S>>;
  static task<result> walk(weir::pipeline<S>& source) {
    result all;
    auto step = [&](value_of<S>&& item) {
      all.push_back(std::move(item));
      return true;
    };
    co_await for_all_items<S, decltype(step)>::run(source, step);
    co_return all;
  }
};
template <class S>
struct to_vector_sink : sink_task<S, to_vector_body<S>> {};

template <class S>
struct count_body {
  using result = std::int64_t;
  static task<result> walk(weir::pipeline<S>& source) {
    std::int64_t items = 0;
    auto step = [&](value_of<S>&&) {
      ++items;
      return true;
    };
    co_await for_all_items<S, decltype(step)>::run(source, step);
    co_return items;
  }
};
template <class S>
struct count_sink : sink_task<S, count_body<S>> {};

template <class S, bool Last>
struct end_body {
  using result = std::optional<value_of<S>>;
  static task<result> walk(weir::pipeline<S>& source) {
    result found;
    auto step = [&](value_of<S>&& item) {
      found.emplace(std::move(item));
      return Last;
    };
    co_await for_all_items<S, decltype(step)>::run(source, step);
    co_return found;
  }
};
template <class S>
struct first_sink : sink_task<S, end_body<S, false>> {};
template <class S>
struct last_sink : sink_task<S, end_body<S, true>> {};

template <class S, class F>
struct for_each_body {
  using result = void;
  static task<> walk(weir::pipeline<S>& source, F& fn) {
    auto hand_over = [&](value_of<S>& item) { return fn(std::move(item)); };
    auto then = [](value_of<S>&, auto&&) { return true; };
    co_await each_with(source, hand_over, then);
  }
};
template <class S, class F>
struct for_each_sink : sink_task<S, for_each_body<S, F>, F> {};

/// Ends at the first item for which the predicate is `Hit`; the answer is then `Answer`.
template <class S, class F, bool Hit, bool Answer>
struct test_body {
  using result = bool;
  static task<bool> walk(weir::pipeline<S>& source, F& fn) {
    bool answer = !Answer;
    auto look = [&](value_of<S>& item) { return fn(std::as_const(item)); };
    auto then = [&](value_of<S>&, bool held) {
      if (held == Hit) answer = Answer;
      return held != Hit;
    };
    co_await each_with(source, look, then);
    co_return answer;
  }
};
template <class S, class F>
struct any_of_sink : sink_task<S, test_body<S, F, true, true>, F> {};
template <class S, class F>
struct all_of_sink : sink_task<S, test_body<S, F, false, false>, F> {};
template <class S, class F>
struct none_of_sink : sink_task<S, test_body<S, F, true, false>, F> {};

template <class S, class F>
struct find_body {
  using result = std::optional<value_of<S>>;
  static task<result> walk(weir::pipeline<S>& source, F& fn) {
    result found;
    auto look = [&](value_of<S>& item) { return fn(std::as_const(item)); };
    auto then = [&](value_of<S>& item, bool held) {
      if (held) found.emplace(std::move(item));
      return !held;
    };
    co_await each_with(source, look, then);
    co_return found;
  }
};
template <class S, class F>
struct find_sink : sink_task<S, find_body<S, F>, F> {};

template <class S, class A, class F>
struct fold_body {
  using result = A;
  static task<A> walk(weir::pipeline<S>& source, A& state, F& fn) {
    auto add = [&](value_of<S>& item) { return fn(std::move(state), std::move(item)); };
    auto then = [&](value_of<S>&, auto&& next) {
      state = std::forward<decltype(next)>(next);
      return true;
    };
    co_await each_with(source, add, then);
    co_return std::move(state);
  }
};
template <class S, class A, class F>
struct fold_sink : sink_task<S, fold_body<S, A, F>, A, F> {};

template <class S, class F>
struct reduce_body {
  using result = std::optional<value_of<S>>;
  static task<result> walk(weir::pipeline<S>& source, F& fn) {
    result state = co_await source.next();
    if (!state) co_return state;
    auto add = [&](value_of<S>& item) { return fn(std::move(*state), std::move(item)); };
    auto then = [&](value_of<S>&, auto&& next) {
      state.emplace(std::forward<decltype(next)>(next));
      return true;
    };
    co_await each_with(source, add, then);
    co_return state;
  }
};
template <class S, class F>
struct reduce_sink : sink_task<S, reduce_body<S, F>, F> {};

}  // namespace detail
}  // namespace weir
