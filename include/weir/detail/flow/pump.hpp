// SPDX-License-Identifier: MIT
// A pump pulls a stream concurrently with its consumer, in a child of the consumer's scope.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/flow/stage.hpp>
#include <weir/future.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>
#include <weir/stream/stream.hpp>

namespace weir::detail {

/// Notifies one owner to poll again.
class signal_leaf {
 public:
  /// Nothing available yet: the next notify() notifies `owner`.
  void wait_for(composite& owner) noexcept {
    link_.owner = &owner;
    link_.state = arm_link::phase::armed;
  }
  void notify() noexcept {
    if (link_.state == arm_link::phase::armed) link_.owner->arm_completed(link_);
  }
  unsigned withdraw_all() noexcept {
    link_.state = arm_link::phase::idle;
    return 0;
  }

 private:
  arm_link link_;
};

/// The state shared by a stage and its child; it lives as long as either of them.
///
/// The child is hidden (it does not count in size()) and isolated (its errors go only to the
/// stream), and progresses without polling. It is a service of the child that first pulls the
/// stream, or a child of the scope whose body does; that owner joins it, and cancels it at the
/// latest when it ends. Destroying the stage cancels it.
class pump_base {
 public:
  pump_base() = default;
  pump_base(const pump_base&) = delete;
  pump_base& operator=(const pump_base&) = delete;

  bool started() const noexcept { return child_.get() != nullptr; }
  bool ended() const noexcept { return started() && child_.get()->done(); }
  enum class begun : std::uint8_t { by_pull, ahead };
  /// Starts `work` for the running code.
  void start(task<> work, begun when);
  void cancel() noexcept;
  /// A task that waits for the child's end, whatever its outcome.
  task<> join() const;
  /// Whether the child has ended; if not, `owner` is notified when it has.
  bool poll_end(composite& owner) {
    if (!end_.made()) end_.make(child_);
    return end_.poll(owner);
  }
  /// Pending; if the child has ended without a result, it was cancelled: errc::stream_interrupted.
  pull wait_for_news(composite& owner) {
    if (poll_end(owner)) raise_pump_cancelled();
    news.wait_for(owner);
    return pull::pending;
  }
  unsigned withdraw_all() noexcept { return news.withdraw_all() + end_.withdraw_all(); }

  signal_leaf news;  // for the stage

 protected:
  ~pump_base() = default;

 private:
  [[noreturn]] static void raise_pump_cancelled();
  core_ref child_;
  wait_leaf<settled_wait> end_;
};

/// Runs `feed(self)`, then closes the source, even if it is cancelled; finally notifies the stage.
template <class State>
struct pump_work {
  struct telling {
    State* self;
    ~telling() { self->news.notify(); }
  };
  static task<> run(std::shared_ptr<State> self) {
    const telling at_the_end{self.get()};
    auto feed = [&] { return State::feed(*self); };
    auto close = [&] { return self->source.close(); };
    using around = finally_region<decltype(close)>;
    co_await run_region<void, around, decltype(feed)&>(typename around::setup(close), feed);
  }
  /// Waits for the child, then drops the remaining results.
  static task<> end(std::shared_ptr<State> self) {
    co_await self->join();
    self->clear();
  }
};

/// A stage whose child does the work. `State` is a pump_base with
///   static task<> feed(State&)     what the child does
///   pull take(std::optional<value_type>& out, composite& owner)   after the child was started
///   void clear()                   drops results and their permits
template <class State>
class pump_stage {
 public:
  using value_type = typename State::value_type;
  static constexpr bool leaves_pending = State::leaves_pending;

  template <class S, class... Args>
    requires(sizeof...(Args) > 0)
  explicit pump_stage(S source, Args... args)
      : state_(std::make_shared<State>(std::move(source), std::move(args)...)),
        work_(&pump_work<State>::run),
        end_(&pump_work<State>::end) {}
  pump_stage(pump_stage&&) noexcept = default;
  pump_stage& operator=(pump_stage&&) noexcept = default;
  ~pump_stage() {
    if (state_ != nullptr) state_->cancel();
  }
  void start(pump_base::begun when = pump_base::begun::by_pull) {
    if (!state_->started()) state_->start(work_(state_), when);
  }
  pull poll(std::optional<value_type>& out, composite& owner) {
    start();
    return state_->take(out, owner);
  }
  unsigned withdraw_all() noexcept { return state_->withdraw_all(); }
  void shut(closing& c) {
    if (!state_->started()) return;
    state_->cancel();
    c.later(end_(state_));
  }
  void describe(dump_line& line) const { describe_pump(line); }

 private:
  static void describe_pump(dump_line& line);
  std::shared_ptr<State> state_;
  // Pointers, because g++-12 warns about coroutines that are instantiated from virtual functions.
  task<> (*work_)(std::shared_ptr<State>);
  task<> (*end_)(std::shared_ptr<State>);
};
void describe_pump_stage(dump_line& line);
template <class State>
void pump_stage<State>::describe_pump(dump_line& line) {
  describe_pump_stage(line);
}

}  // namespace weir::detail
