// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/async.hpp>.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <weir/detail/flow/circular_buffer.hpp>
#include <weir/detail/flow/pump.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/governor/counting.hpp>
#include <weir/policy/bulkhead.hpp>
#include <weir/scope.hpp>
#include <weir/stream/sink.hpp>

namespace weir {

namespace detail {

/// A number as its own governor; a governor as a reference to it.
inline governor_user<counting_governor> permits_of(std::int64_t limit) {
  return governor_user<counting_governor>(
      std::make_shared<counting_governor>(limit, governor_options{.name = "stream"}));
}
template <governor G>
governor_user<G> permits_of(G& g) {
  return governor_user<G>(g);
}
template <class G>
concept permits = std::integral<std::remove_cvref_t<G>> || governor<std::remove_cvref_t<G>> ||
                  std::is_same_v<std::remove_cvref_t<G>, unbounded_t>;

/// The maximum of a governor is 2^32 - 1, which "unbounded" means here.
template <class G>
auto permits_from(G&& g) {
  if constexpr (std::is_same_v<std::remove_cvref_t<G>, unbounded_t>) {
    return permits_of(std::int64_t{0xffffffff});
  } else if constexpr (std::integral<std::remove_cvref_t<G>>) {
    return permits_of(static_cast<std::int64_t>(g));
  } else {
    static_assert(std::is_lvalue_reference_v<G>, "the governor must outlive the stream");
    return permits_of(g);
  }
}
template <class G>
using permits_t = decltype(permits_from(std::declval<G>()));

/// The result of a concurrent callback, direct or of the operation it returns; `unit` for void.
template <class Made>
struct async_result {
  using type = std::remove_cvref_t<Made>;
};
template <operation Made>
struct async_result<Made> {
  using type = result_t<Made>;
};
template <class F, class T>
using async_value = unit_or<typename async_result<std::invoke_result_t<F&, T>>::type>;

/// Work on one item: its place in the order, and its permit.
template <class V>
struct async_slot : frame_allocated {
  permit held;
  std::optional<V> value;
  std::exception_ptr error;
  bool done = false;
  child<void> work;
};

/// Calls `fn(item)`, plain or a task, and keeps the result.
template <class F, class T, class V>
task<> call_async(F& fn, T item, std::optional<V>& value) {
  using made = std::invoke_result_t<F&, T>;
  if constexpr (is_task<made>) {
    if constexpr (std::is_void_v<final_t<F, T>>) {
      co_await fn(std::move(item));
      value.emplace();
    } else {
      value.emplace(co_await fn(std::move(item)));
    }
  } else if constexpr (operation<made>) {
    auto op = fn(std::move(item));
    auto run = detail::as_task(op, this_context());
    if constexpr (std::is_void_v<result_t<made>>) {
      co_await std::move(run);
      value.emplace();
    } else {
      value.emplace(co_await std::move(run));
    }
  } else if constexpr (std::is_void_v<made>) {
    fn(std::move(item));
    value.emplace();
  } else {
    value.emplace(fn(std::move(item)));
  }
  co_return;
}

/// In order: an error arrives in its place, and later items are cancelled at once.
template <class S, class G, class F>
class map_async_state : public pump_base {
  using item = value_of<S>;
  using slot = async_slot<async_value<F, item>>;

 public:
  using value_type = async_value<F, item>;
  static constexpr bool leaves_pending = true;

  map_async_state(S stage, G g, F f)
      : source(std::move(stage)), permits_(std::move(g)), fn_(std::move(f)) {}

  static task<> feed(map_async_state& self) {
    auto body = [&](scope& s) -> task<> {
      self.feeder_ = s.spawn(pull_all(self, s));
      co_return;
    };
    co_await with_scope({.name = "map_async"}, body);
  }
  pull take(std::optional<value_type>& out, composite& owner) {
    if (failure_ == nullptr && !slots_.empty() && slots_.front()->done) {
      const std::unique_ptr<slot> first = std::move(slots_.front());
      slots_.pop_front();
      if (first->error == nullptr) {
        out = std::move(first->value);
        return pull::value;
      }
      failure_ = first->error;
      cancel();
    }
    if (failure_ != nullptr || (fed_ && slots_.empty())) {
      if (!poll_end(owner)) return pull::pending;
      clear();
      if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
      return pull::end;
    }
    return wait_for_news(owner);
  }

  void clear() noexcept { slots_.clear(); }

  weir::pipeline<S> source;

 private:
  static task<> pull_all(map_async_state& self, scope& s) {
    std::unique_ptr<slot> broken;
    try {
      for (;;) {
        permit held = co_await self.permits_.governor().acquire();
        auto next = co_await self.source.next();
        if (!next) break;
        auto made = std::make_unique<slot>();
        task<> work = work_on(self, *made, std::move(*next));  // the item's move may throw
        slot& mine = *made;
        mine.held = std::move(held);
        self.slots_.push_back(std::move(made));
        mine.work = s.spawn(std::move(work));
      }
    } catch (...) {
      broken = std::make_unique<slot>();
      broken->error = std::current_exception();
      broken->done = true;
    }
    if (broken != nullptr) self.slots_.push_back(std::move(broken));
    self.fed_ = true;
    self.news.notify();
  }
  static task<> work_on(map_async_state& self, slot& mine, item what) {
    try {
      co_await call_async(self.fn_, std::move(what), mine.value);
    } catch (...) {
      mine.error = std::current_exception();
    }
    mine.done = true;
    if (mine.error != nullptr) self.stop_behind(mine);
    self.news.notify();
  }
  void stop_behind(slot& failed) {
    feeder_.cancel();
    fed_ = true;
    bool behind = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (behind) slots_[i]->work.cancel();
      behind = behind || slots_[i].get() == &failed;
    }
  }

  G permits_;
  F fn_;
  child<void> feeder_;
  circular_buffer<std::unique_ptr<slot>> slots_;
  std::exception_ptr failure_;
  bool fed_ = false;
};

/// In order of completion: an error arrives at once and cancels everything else.
template <class S, class G, class F>
class map_unordered_state : public pump_base {
  using item = value_of<S>;

 public:
  using value_type = async_value<F, item>;
  static constexpr bool leaves_pending = true;

  map_unordered_state(S stage, G g, F f)
      : source(std::move(stage)), permits_(std::move(g)), fn_(std::move(f)) {}

  static task<> feed(map_unordered_state& self) {
    auto body = [&](scope& s) -> task<> {
      for (;;) {
        permit held = co_await self.permits_.governor().acquire();
        auto next = co_await self.source.next();
        if (!next) break;
        s.spawn(work_on(self, std::move(*next), std::move(held)));
      }
    };
    try {
      co_await with_scope({.name = "map_async_unordered"}, body);
    } catch (...) {
      self.failure_ = std::current_exception();
    }
    self.fed_ = true;
    self.news.notify();
  }
  pull take(std::optional<value_type>& out, composite& owner) {
    if (failure_ == nullptr && !done_.empty()) {
      out.emplace(std::move(done_.front().value));
      done_.pop_front();
      return pull::value;
    }
    if (fed_) {
      if (!poll_end(owner)) return pull::pending;
      clear();
      if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
      return pull::end;
    }
    return wait_for_news(owner);
  }

  void clear() noexcept { done_.clear(); }

  weir::pipeline<S> source;

 private:
  struct result {
    result(value_type v, permit p) : value(std::move(v)), held(std::move(p)) {}
    value_type value;
    permit held;
  };
  static task<> work_on(map_unordered_state& self, item what, permit held) {
    std::optional<value_type> value;
    co_await call_async(self.fn_, std::move(what), value);
    self.done_.push_back(result(std::move(*value), std::move(held)));
    self.news.notify();
  }

  G permits_;
  F fn_;
  circular_buffer<result> done_;
  std::exception_ptr failure_;
  bool fed_ = false;
};

/// Pulls ahead of its consumer.
template <class S, class G>
class buffered_state : public pump_base {
 public:
  using value_type = value_of<S>;
  static constexpr bool leaves_pending = true;

  buffered_state(S stage, G g) : source(std::move(stage)), permits_(std::move(g)) {}

  static task<> feed(buffered_state& self) {
    try {
      for (;;) {
        permit held = co_await self.permits_.governor().acquire();
        auto next = co_await self.source.next();
        if (!next) break;
        self.kept_.push_back(result(std::move(*next), std::move(held)));
        self.news.notify();
      }
    } catch (...) {
      self.failure_ = std::current_exception();
    }
    self.fed_ = true;
    self.news.notify();
  }
  pull take(std::optional<value_type>& out, composite& owner) {
    if (!kept_.empty()) {
      out.emplace(std::move(kept_.front().value));
      kept_.pop_front();
      return pull::value;
    }
    if (fed_) {
      if (!poll_end(owner)) return pull::pending;
      clear();
      if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
      return pull::end;
    }
    return wait_for_news(owner);
  }

  void clear() noexcept { kept_.clear(); }

  weir::pipeline<S> source;

 private:
  struct result {
    result(value_type v, permit p) : value(std::move(v)), held(std::move(p)) {}
    value_type value;
    permit held;
  };
  G permits_;
  circular_buffer<result> kept_;
  std::exception_ptr failure_;
  bool fed_ = false;
};

/// Holds a permit during each pull, and only then.
template <class S, class G>
class limit_stage : public stage_over<S> {
 public:
  using value_type = value_of<S>;
  static constexpr bool leaves_pending = true;
  limit_stage(S source, G g)
      : stage_over<S>(std::move(source)), permits_(std::move(g)), acquire_(&acquire) {}
  pull poll(std::optional<value_type>& out, composite& owner) {
    if (!held_ && waiting_ == nullptr) {
      if (auto now = permits_.governor().try_acquire()) {
        held_ = std::move(*now);
      } else {
        granted_ = std::make_shared<permit>();
        waiting_ = std::make_unique<task_leaf>(acquire_(permits_, granted_));
      }
    }
    if (waiting_ != nullptr) {
      if (waiting_->poll(owner) == pull::pending) return pull::pending;
      waiting_.reset();
      held_ = std::move(*granted_);
    }
    const pull answer = this->source_.poll(out, owner);
    if (answer == pull::value || answer == pull::end) held_.release();
    return answer;
  }
  unsigned withdraw_all() noexcept {
    const unsigned leaving =
        (waiting_ != nullptr ? waiting_->withdraw_all() : 0) + this->source_.withdraw_all();
    if (leaving == 0) let_go();
    return leaving;
  }
  void shut(closing& c) {
    let_go();
    this->source_.shut(c);
  }
  void describe(dump_line& line) const {
    waiting_ != nullptr ? waiting_->describe(line) : this->source_.describe(line);
  }

 private:
  void let_go() noexcept {
    waiting_.reset();
    held_ = permit();
  }
  static task<> acquire(G permits, std::shared_ptr<permit> into) {
    *into = co_await permits.governor().acquire();
  }
  G permits_;
  task<> (*acquire_)(G, std::shared_ptr<permit>);  // see pump_stage
  permit held_;
  std::shared_ptr<permit> granted_;
  std::unique_ptr<task_leaf> waiting_;
};

template <class S, class G, class F>
class map_async_stage : public pump_stage<map_async_state<S, G, F>> {
 public:
  map_async_stage(S source, G g, F fn)
      : pump_stage<map_async_state<S, G, F>>(std::make_shared<map_async_state<S, G, F>>(
            std::move(source), std::move(g), std::move(fn))) {}
};
template <class S, class G, class F>
class map_unordered_stage : public pump_stage<map_unordered_state<S, G, F>> {
 public:
  map_unordered_stage(S source, G g, F fn)
      : pump_stage<map_unordered_state<S, G, F>>(std::make_shared<map_unordered_state<S, G, F>>(
            std::move(source), std::move(g), std::move(fn))) {}
};
template <class S, class G, class Now>
class buffered_stage : public pump_stage<buffered_state<S, G>> {
 public:
  buffered_stage(S source, G g, Now now)
      : pump_stage<buffered_state<S, G>>(
            std::make_shared<buffered_state<S, G>>(std::move(source), std::move(g))) {
    if (now) this->start(pump_base::begun::ahead);
  }
};

}  // namespace detail
}  // namespace weir
