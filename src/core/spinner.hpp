// SPDX-License-Identifier: MIT
// What a thread does before it sleeps, because a wake-up by the kernel may take longer than what it
// waits for: it polls with the processor's pause instruction, then yields its core some times.
//
// - On another core the event comes while this thread pauses.
// - On the same core it can only come after a yield, and the pauses delay it.
// - If the event is far away, both are wasted.
//
// The spinner learns which it is, and reads no clock while it polls: a stage is used while it
// paid lately. Each has a credit, which success raises and failure lowers. Without credit it is
// tried once in a while, the less often the more trials have failed in a row. On a single core the
// pauses are not even tried.
//
// A trial of the pauses lasts longer than the kernel takes to wake the other side: two threads that
// always find each other asleep would otherwise never learn that it pays to stay awake. While the
// pauses pay, their number is limited by what was needed lately, but not to less than a wake-up
// takes: if one side is interrupted and the other falls asleep meanwhile, it is late with its next
// answer by that time, and the first one would fall asleep, too, and so on.
//
// A yield may give the core to another program for a whole time slice. So some yields are measured,
// and after an expensive one the thread prefers to sleep: a wake-up gets the core back at once.
//
// A spinner belongs to one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace weir::detail {

/// Tells the processor that this thread polls.
inline void pause_processor() noexcept {
#if defined(__i386__) || defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield");
#endif
}

/// Whether the threads of this process that asked so far may use several cores between them. False
/// may become true, but not the other way round: if cores are taken away later, the pauses only
/// lose their credit.
bool several_cores() noexcept;

class spinner {
 public:
  /// Polls `ready()` for a short time, if that paid lately. Returns whether it became true.
  template <class Ready>
  bool spin(const Ready& ready) noexcept {
    if (pausing_.is_due()) {
      const int limit = limit_of_pauses();
      for (int i = 0; i < limit; ++i) {
        if (ready()) return paused(i);
        pause_processor();
      }
      pausing_.failed();
    }
    return yielding_.is_due() && yield_until(ready);
  }

 private:
  static constexpr int yields = 4;
  static constexpr int wake_ups_per_trial = 3;

  /// Whether a stage paid lately.
  class habit {
   public:
    bool has_credit() const noexcept { return credit_ > 0; }
    /// Whether to use the stage now: it has credit, or it is time for a trial.
    bool is_due() noexcept {
      if (credit_ > 0) return true;
      if (--until_trial_ > 0) return false;
      if (interval_ < interval_max) interval_ *= 2;
      until_trial_ = interval_;
      return true;
    }
    bool paid() noexcept {
      if (credit_ < credit_max) ++credit_;
      interval_ = interval_min;
      return true;
    }
    void failed() noexcept { credit_ = credit_ > 2 ? credit_ - 2 : 0; }
    /// It cost far more than sleeping: the next trial comes after as many spins as make up for it.
    void lost(std::chrono::nanoseconds time) noexcept {
      credit_ = 0;
      until_trial_ = static_cast<int>(std::min(time, lost_max) / cost_per_spin);
    }

   private:
    static constexpr int credit_max = 16;
    static constexpr int interval_min = 8;
    static constexpr int interval_max = 512;
    static constexpr std::chrono::nanoseconds cost_per_spin{64};
    static constexpr std::chrono::nanoseconds lost_max = std::chrono::milliseconds(100);

    int credit_ = 0;
    int until_trial_ = 1;
    int interval_ = interval_min;
  };

  /// The length of a trial.
  static int pauses_max() noexcept;

  int limit_of_pauses() const noexcept {
    if (!pausing_.has_credit()) return several_cores() ? pauses_max() : 0;
    return std::clamp(2 * needed_, pauses_max() / wake_ups_per_trial, pauses_max());
  }
  bool paused(int times) noexcept {
    needed_ = std::max(times, needed_ - needed_ / 8);
    return pausing_.paid();
  }

  template <class Ready>
  bool yield_until(const Ready& ready) noexcept {
    using std::chrono::steady_clock;
    if (ready()) return yielding_.paid();
    const bool measured = !yielding_.has_credit() || ++yielded_ % one_measured_of == 0;
    const auto begun = measured ? steady_clock::now() : steady_clock::time_point();
    bool found = false;
    for (int i = 0; i < yields && !found; ++i) {
      std::this_thread::yield();
      found = ready();
    }
    found ? (void)yielding_.paid() : yielding_.failed();
    if (!measured) return found;
    const std::chrono::nanoseconds spent = steady_clock::now() - begun;
    if (spent > yields_limit) yielding_.lost(spent);
    return found;
  }

  static constexpr unsigned one_measured_of = 8;
  static constexpr std::chrono::nanoseconds yields_limit = std::chrono::microseconds(50);

  habit pausing_;
  habit yielding_;
  unsigned yielded_ = 0;
  int needed_ = 0;  // the largest number of pauses that paid lately
};

}  // namespace weir::detail
