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
#include <weir/detail/flow/collecting_pump.hpp>
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
class map_async_state : public collecting_pump<S, map_async_state<S, G, F>, G> {
  using base = collecting_pump<S, map_async_state, G>;
  using item = value_of<S>;
  using slot = async_slot<async_value<F, item>>;

 public:
  using value_type = async_value<F, item>;
  static constexpr const char* scope_name = "map_async";

  map_async_state(S stage, G g, F f) : base(std::move(stage), std::move(g)), fn_(std::move(f)) {}

  /// A child pulls the source, because an error of a worker cancels that and not the items before.
  task<> pull_source() {
    puller_ = this->workers().spawn(pull_until_error(*this));
    return do_nothing();
  }
  void collect(item&& what, permit&& held) {
    auto made = std::make_unique<slot>();
    task<> work = work_on(*this, *made, std::move(what));  // the item's move may throw
    slot& mine = *made;
    mine.held = std::move(held);
    slots_.push_back(std::move(made));
    mine.work = this->workers().spawn(std::move(work));
  }
  pull give(std::optional<value_type>& out, composite&) {
    if (this->failed() || slots_.empty() || !slots_.front()->done) return pull::end;
    const std::unique_ptr<slot> first = std::move(slots_.front());
    slots_.pop_front();
    if (first->error == nullptr) {
      out = std::move(first->value);
      return pull::value;
    }
    this->fail(first->error);
    return pull::end;
  }
  void clear() noexcept { slots_.clear(); }

 private:
  static task<> do_nothing() { co_return; }
  static task<> pull_until_error(map_async_state& self) {
    std::unique_ptr<slot> broken;
    try {
      co_await base::pull_each(self);
    } catch (...) {
      broken = std::make_unique<slot>();
      broken->error = std::current_exception();
      broken->done = true;
    }
    if (broken == nullptr) co_return;
    self.slots_.push_back(std::move(broken));
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
    puller_.cancel();
    bool behind = false;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (behind && !slots_[i]->done) slots_[i]->work.cancel();
      behind = behind || slots_[i].get() == &failed;
    }
  }

  F fn_;
  child<void> puller_;
  circular_buffer<std::unique_ptr<slot>> slots_;
};

/// Results that are ready, each with its permit.
template <class V>
class ready_results {
 public:
  void add(V&& value, permit&& held) { all_.push_back(result(std::move(value), std::move(held))); }
  pull give(std::optional<V>& out) {
    if (all_.empty()) return pull::end;
    out.emplace(std::move(all_.front().value));
    all_.pop_front();
    return pull::value;
  }
  void clear() noexcept { all_.clear(); }

 private:
  struct result {
    result(V&& v, permit&& p) : value(std::move(v)), held(std::move(p)) {}
    V value;
    permit held;
  };
  circular_buffer<result> all_;
};

/// In order of completion: an error arrives at once and cancels everything else.
template <class S, class G, class F>
class map_unordered_state : public collecting_pump<S, map_unordered_state<S, G, F>, G> {
  using base = collecting_pump<S, map_unordered_state, G>;
  using item = value_of<S>;

 public:
  using value_type = async_value<F, item>;
  static constexpr const char* scope_name = "map_async_unordered";

  map_unordered_state(S stage, G g, F f)
      : base(std::move(stage), std::move(g)), fn_(std::move(f)) {}

  void collect(item&& what, permit&& held) {
    this->workers().spawn(work_on(*this, std::move(what), std::move(held)));
  }
  pull give(std::optional<value_type>& out, composite&) {
    return this->failed() ? pull::end : ready_.give(out);
  }
  void clear() noexcept { ready_.clear(); }

 private:
  static task<> work_on(map_unordered_state& self, item what, permit held) {
    std::optional<value_type> value;
    co_await call_async(self.fn_, std::move(what), value);
    self.ready_.add(std::move(*value), std::move(held));
    self.news.notify();
  }

  F fn_;
  ready_results<value_type> ready_;
};

/// Pulls ahead of its consumer. Results come before an error of the source.
template <class S, class G>
class buffered_state : public collecting_pump<S, buffered_state<S, G>, G> {
 public:
  using value_type = value_of<S>;

  buffered_state(S stage, G g)
      : collecting_pump<S, buffered_state, G>(std::move(stage), std::move(g)) {}

  void collect(value_type&& what, permit&& held) {
    ready_.add(std::move(what), std::move(held));
    this->news.notify();
  }
  pull give(std::optional<value_type>& out, composite&) { return ready_.give(out); }
  void clear() noexcept { ready_.clear(); }

 private:
  ready_results<value_type> ready_;
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
using map_async_stage = pump_stage<map_async_state<S, G, F>>;
template <class S, class G, class F>
using map_unordered_stage = pump_stage<map_unordered_state<S, G, F>>;
template <class S, class G, class Now>
class buffered_stage : public pump_stage<buffered_state<S, G>> {
 public:
  buffered_stage(S source, G g, Now now)
      : pump_stage<buffered_state<S, G>>(std::move(source), std::move(g)) {
    if (now) this->start(pump_base::begun::ahead);
  }
};

}  // namespace detail
}  // namespace weir
