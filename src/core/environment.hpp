// SPDX-License-Identifier: MIT
// Time and chance: the only place below src/ that reads clocks or makes random numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <weir/duration.hpp>

namespace weir::detail {

class loop;

/// Picks among things that could happen next. In production there is none and the first one wins.
class chooser {
 public:
  chooser() = default;
  chooser(const chooser&) = delete;
  chooser& operator=(const chooser&) = delete;
  /// 0 <= result < options; options > 1.
  virtual std::size_t choose(std::size_t options) = 0;

 protected:
  ~chooser() = default;
};

class environment {
 public:
  environment() = default;
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  virtual ~environment() = default;

  virtual time_point now() = 0;
  virtual wall_time wall_now() = 0;
  virtual std::uint64_t random() = 0;
  /// Nothing is ready: waits for a message, a ring or `until`. With virtual time it moves the clock
  /// instead.
  virtual void park(loop& here, std::optional<time_point> until) = 0;
  /// Called between turns, before timers are looked at.
  virtual void between_turns(loop&) {}
  /// A step of a fiber is about to be made; true if the run must stop (too many steps).
  virtual bool count_step() { return false; }
  virtual chooser* choices() noexcept { return nullptr; }
  /// True if other threads may wake this loop.
  virtual bool hears_threads() const noexcept { return true; }
};

/// A small, fast generator with 256 bits of state (xoshiro256**), seeded from one number.
struct random_numbers {
  explicit random_numbers(std::uint64_t seed) noexcept;
  std::uint64_t next() noexcept;
  /// Uniform in [0, n), without modulo bias.
  std::uint64_t below(std::uint64_t n) noexcept;

 private:
  std::uint64_t s_[4];
};

/// The clocks and the random numbers of the machine. One per loop.
class real_environment : public environment {
 public:
  time_point now() override;
  wall_time wall_now() override;
  std::uint64_t random() override;
  void park(loop& here, std::optional<time_point> until) override;

 private:
  std::optional<random_numbers> numbers_;  // seeded at the first use
};

}  // namespace weir::detail
