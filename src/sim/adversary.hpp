// SPDX-License-Identifier: MIT
// The one chooser of a simulation: everything that could have gone otherwise is asked of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/sim_trace.hpp>

#include "core/environment.hpp"
#include "sim/ready_list.hpp"

namespace weir::detail {

/// A choice other than the first, by its place in the sequence of all choices.
struct preemption {
  std::size_t at = 0;
  std::uint64_t pick = 0;
};

/// Chooses by a seed (fifo, random, pct), by a list of preemptions (all other choices are the
/// first), or by a trace; and writes down what it chose.
///
/// Invariants:
/// 1. Choices and random numbers come from two generators: how many choices are made has no
///    influence on the numbers that the program sees.
/// 2. Only a question with more than one answer is a choice and is written down.
/// 3. Frozen, it answers "the first", strikes no faults and writes nothing down.
class adversary final : public chooser {
 public:
  adversary(sim::strategy strategy, std::uint64_t seed);
  adversary(sim::strategy strategy, std::uint64_t seed, std::vector<preemption> plan);
  explicit adversary(const sim::trace& repeated);
  /// Chooses as `how` does with `choices`, in a run that is otherwise that of `seed`: with its
  /// random numbers, and written down under its strategy.
  static adversary otherwise(sim::strategy how, std::uint64_t choices, sim::strategy strategy,
                             std::uint64_t seed);

  /// True if every await may give up the turn.
  bool preempts() const noexcept { return strategy_.kind != sim::strategy::sort::fifo; }

  std::size_t choose(std::size_t options) override;
  /// The index of what is to happen next. REQUIRES: not empty.
  std::size_t choose(ready_list& ready);
  /// A new item may get a rank.
  void enrol(const ready_item& item) noexcept;
  /// The one that would run next has kept others waiting for too long.
  void demote(ready_list& ready) noexcept;
  std::uint64_t number();
  /// Whether a fault strikes.
  bool chance(double rate);

  void write_down(bool yes) noexcept { writing_ = yes; }
  void freeze(bool yes) noexcept { frozen_ = yes; }
  /// The trace so far.
  sim::trace take_trace(std::int64_t max_steps) {
    return {named_, seed_, std::move(made_), max_steps};
  }

  /// Why the trace does not fit; empty if it does.
  const std::string& mismatch() const noexcept { return mismatch_; }
  /// The run is over: is anything left of the trace?
  void expect_end();

 private:
  enum class mode : std::uint8_t { seeded, planned, repeated };
  std::uint64_t planned_pick(std::uint64_t options) noexcept;
  std::uint64_t repeated_pick(std::uint32_t options);
  std::uint64_t decided(std::uint32_t options, std::uint64_t seeded);
  std::uint64_t settle(std::uint32_t options, std::uint64_t pick);
  void place_drops();

  sim::strategy strategy_;
  sim::strategy named_;  // in the trace
  std::uint64_t seed_;
  mode mode_;
  bool writing_ = false;
  bool frozen_ = false;
  random_numbers choices_;
  random_numbers numbers_;
  std::size_t position_ = 0;
  std::vector<sim::trace::choice> made_;
  std::vector<preemption> plan_;
  std::vector<sim::trace::choice> repeated_;
  std::size_t next_planned_ = 0;
  /// pct: at which choice among strands the first of them gets which low rank.
  struct drop {
    std::uint64_t at;
    std::uint16_t rank;
  };
  std::vector<drop> drops_;  // the next one last
  std::uint64_t asked_ = 0;  // choices among strands so far
  std::string mismatch_;
};

}  // namespace weir::detail
