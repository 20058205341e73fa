// SPDX-License-Identifier: MIT
// Time and randomness of all loops. Other code reads a clock only to limit spins and dumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <weir/duration.hpp>

namespace weir::detail {

class loop;
class served_loop;

/// Chooses among the things that could happen next. Without one, as in production, the first wins.
class chooser {
 public:
  /// 0 <= result < options; options > 1.
  virtual std::size_t choose(std::size_t options) = 0;

 protected:
  chooser() = default;
  chooser(const chooser&) = default;
  chooser& operator=(const chooser&) = default;
  ~chooser() = default;
};

/// Compares times with the wall clock and is called when that clock was set.
class wall_watch {
 public:
  virtual void wall_clock_set() noexcept = 0;

 protected:
  wall_watch() = default;
  wall_watch(const wall_watch&) = default;
  wall_watch& operator=(const wall_watch&) = default;
  ~wall_watch() = default;

 private:
  friend class environment;
  wall_watch* next_ = nullptr;
};

class environment {
 public:
  environment() = default;
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  virtual ~environment() = default;

  virtual time_point now() = 0;
  virtual wall_time wall_now() = 0;
  /// How long a change of the wall clock, or a suspended machine, may go unnoticed: a wait for a
  /// wall time checks again after this. Unbounded: the environment notifies the watches.
  virtual duration wall_check() const noexcept { return std::chrono::seconds(1); }
  void add_watch(wall_watch& w) noexcept;
  void remove_watch(wall_watch& w) noexcept;
  virtual std::uint64_t random() = 0;
  /// Percentage of the last ten seconds in which some work waited for a core; empty if unknown.
  virtual std::optional<double> cpu_pressure() { return std::nullopt; }
  /// Nothing is ready: waits for a message, a wake-up or `until`. Virtual time advances the clock
  /// instead.
  virtual void park(loop& here, std::optional<time_point> until) = 0;
  /// Called between turns, before timers fire.
  virtual void between_turns(loop&) {}
  /// Maximum number of strands that run before timers and messages are checked.
  virtual int turn_limit() const noexcept { return 64; }
  /// Number of awaits after which a fiber gives up its turn. 0: every await may.
  virtual std::int16_t budget() const noexcept { return 256; }
  /// An exception is leaving a frame.
  virtual void frame_failed(const std::exception_ptr&) noexcept {}
  /// An exception has left a posted function.
  virtual void post_failed(const std::exception_ptr&) noexcept {}
  /// The part of weir::dump about the loops that this environment runs on this thread.
  virtual std::string dump(loop& here);
  /// Runs a served loop: on its own thread, unless the environment hosts it.
  virtual void start(const std::shared_ptr<served_loop>& made);
  /// Identifies the clock of its loops; null: the machine's. Points in time are comparable only
  /// between loops with the same clock.
  virtual const void* clock() const noexcept { return nullptr; }
  /// True if it drives its loops itself, on one thread; otherwise other threads can reach them.
  virtual bool simulated() const noexcept { return false; }

 protected:
  /// The wall clock was set.
  void notify_watches() noexcept;

 private:
  wall_watch* watches_ = nullptr;
};

/// xoshiro256**: small and fast, 256 bits of state, seeded from one number.
struct random_numbers {
  explicit random_numbers(std::uint64_t seed) noexcept;
  std::uint64_t next() noexcept;
  /// Uniform in [0, n), without modulo bias.
  std::uint64_t below(std::uint64_t n) noexcept;

 private:
  std::uint64_t s_[4];
};

/// Parses `some avg10` from the format of Linux's /proc/pressure files.
std::optional<double> pressure_in(std::string_view text) noexcept;

/// The clocks and random numbers of the machine. One per loop.
class real_environment : public environment {
 public:
  time_point now() override;
  wall_time wall_now() override;
  std::uint64_t random() override;
  std::optional<double> cpu_pressure() override;
  void park(loop& here, std::optional<time_point> until) override;

 private:
  std::optional<random_numbers> numbers_;  // seeded at the first use
};

}  // namespace weir::detail
