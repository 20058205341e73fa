// SPDX-License-Identifier: MIT
#include "core/test_clock.hpp"

#include <mutex>
#include <optional>

#include "core/loop.hpp"

namespace weir {

namespace detail {

/// Shared by the clock and the loop that runs on it; any thread may advance the clock.
struct test_clock_state {
  std::mutex mutex;
  time_point now{};
  time_point target{};
  duration wall_shift{};
  bool automatic = false;
  door_ref watcher;  // the loop that runs on this clock
  /// The number of turns after which every strand that was ready when the clock was advanced or a
  /// timer fired has had its turn; only then the clock moves to the target. Empty: not counted yet.
  std::optional<std::uint64_t> had_their_turn;
};

namespace {

class test_clock_environment final : public real_environment {
 public:
  explicit test_clock_environment(test_clock& clock) : state_(clock.state()) {
    const std::lock_guard lock(state_.mutex);
    wall_start_ = real_environment::wall_now() - state_.now.time_since_epoch();
  }
  ~test_clock_environment() override {
    const std::lock_guard lock(state_.mutex);
    state_.watcher = nullptr;
  }

  time_point now() override {
    const std::lock_guard lock(state_.mutex);
    return state_.now;
  }
  wall_time wall_now() override {
    const std::lock_guard lock(state_.mutex);
    return wall_start_ + state_.now.time_since_epoch() + state_.wall_shift;
  }
  duration wall_check() const noexcept override { return unbounded; }
  const void* clock() const noexcept override { return &state_; }
  int turn_limit() const noexcept override { return 1; }
  /// Unknown: a run on this clock must not depend on the real machine.
  std::optional<double> cpu_pressure() override { return std::nullopt; }

  // Moves straight to the target if no timer is due before it.
  void between_turns(loop& here) override {
    look_at_wall();
    const time_point next = here.next_timer();
    const std::lock_guard lock(state_.mutex);
    state_.watcher = here.shared_door();
    if (next <= state_.now) state_.had_their_turn.reset();  // it is about to fire
    if (state_.now >= state_.target || next <= state_.target) return;
    if (!state_.had_their_turn) state_.had_their_turn = here.turns() + here.count_ready();
    if (here.turns() >= *state_.had_their_turn) state_.now = state_.target;
  }

  // Nothing is ready: moves to the next timer, if the target (or automatic mode) allows it.
  void park(loop& here, std::optional<time_point> until) override {
    if (here.look_at_io()) return;
    {
      const std::lock_guard lock(state_.mutex);
      if (state_.wall_shift != seen_shift_ || (until && *until <= state_.now)) return;
      if (until && (*until <= state_.target || state_.automatic)) {
        state_.now = *until;
        state_.target = std::max(state_.target, state_.now);
        return;
      }
      if (state_.now < state_.target) {
        state_.now = state_.target;
        return;
      }
    }
    here.sleep(-1);
  }

  bool runs_on(const test_clock_state& clock) const noexcept { return &state_ == &clock; }

 private:
  void look_at_wall() {
    {
      const std::lock_guard lock(state_.mutex);
      if (state_.wall_shift == seen_shift_) return;
      seen_shift_ = state_.wall_shift;
    }
    notify_watches();
  }

  test_clock_state& state_;
  wall_time wall_start_;
  duration seen_shift_{};
};

}  // namespace

std::unique_ptr<environment> make_test_clock_environment(test_clock& clock) {
  return std::make_unique<test_clock_environment>(clock);
}

}  // namespace detail

test_clock::test_clock() : state_(std::make_shared<detail::test_clock_state>()) {}
test_clock::~test_clock() = default;

void test_clock::advance(duration d) {
  if (d < duration::zero())
    detail::raise(errc::invalid_argument,
                  "test_clock: time does not go back; advance by 0 or more");
  detail::door_ref watcher;
  {
    const std::lock_guard lock(state_->mutex);
    state_->target = detail::saturating_add(std::max(state_->target, state_->now), d);
    watcher = state_->watcher;
    state_->had_their_turn.reset();
    detail::loop* const here = detail::loop::here();
    const auto* env =
        here == nullptr ? nullptr : dynamic_cast<detail::test_clock_environment*>(&here->env());
    if (env != nullptr && env->runs_on(*state_))
      state_->had_their_turn = here->turns() + here->count_ready();
  }
  if (watcher != nullptr) watcher->wake();
}

void test_clock::auto_advance(bool on) {
  detail::door_ref watcher;
  {
    const std::lock_guard lock(state_->mutex);
    state_->automatic = on;
    watcher = state_->watcher;
  }
  if (watcher != nullptr) watcher->wake();
}

void test_clock::shift_wall_clock(duration d) {
  detail::door_ref watcher;
  {
    const std::lock_guard lock(state_->mutex);
    state_->wall_shift += d;
    watcher = state_->watcher;
  }
  if (watcher != nullptr) watcher->wake();
}

time_point test_clock::now() const {
  const std::lock_guard lock(state_->mutex);
  return state_->now;
}

}  // namespace weir
