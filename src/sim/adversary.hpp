// SPDX-License-Identifier: MIT
// The source of all nondeterminism in a simulation: every choice is made here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/sim/trace.hpp>

#include "core/environment.hpp"
#include "sim/ready_list.hpp"

namespace weir::detail {

/// A choice other than the first option, by its position in the sequence of all choices.
struct preemption {
  std::size_t at = 0;
  std::uint64_t pick = 0;
};

/// Chooses by a seed (fifo, random, pct), by a list of preemptions (every other choice takes the
/// first option), or by a trace; and records its choices.
///
/// Invariants:
/// 1. Choices and random numbers come from two generators: the number of choices does not influence
///    the numbers that the program sees.
/// 2. Only a question with more than one answer is a choice and is recorded.
/// 3. While frozen, it takes the first option, injects no faults and records nothing.
class adversary final : public chooser {
 public:
  adversary(sim::strategy strategy, std::uint64_t seed);
  adversary(sim::strategy strategy, std::uint64_t seed, std::vector<preemption> plan);
  explicit adversary(const sim::trace& repeated);
  /// Chooses as `how` does with seed `choices`, in a run that otherwise has the random numbers of
  /// `seed` and is recorded under `strategy` and `seed`.
  static adversary otherwise(sim::strategy how, std::uint64_t choices, sim::strategy strategy,
                             std::uint64_t seed);

  /// True if every await may be preempted.
  bool preempts() const noexcept { return strategy_.what != sim::strategy::kind::fifo; }

  std::size_t choose(std::size_t options) override;
  /// The index of the item to run next. REQUIRES: not empty.
  std::size_t choose(ready_list& ready);
  /// Draws the rank of a new item, if the strategy uses ranks.
  void enrol(const ready_item& item) noexcept;
  /// The item that would run next has kept others waiting for too long: lowers its rank.
  void demote(ready_list& ready) noexcept;
  std::uint64_t number();
  /// Whether to inject a fault.
  bool chance(double rate);

  void write_down(bool yes) noexcept { writing_ = yes; }
  void freeze(bool yes) noexcept { frozen_ = yes; }
  /// Takes the trace recorded so far.
  sim::trace take_trace(std::int64_t max_steps) {
    return {named_, seed_, std::move(made_), max_steps};
  }

  /// Why the trace does not fit; empty if it does.
  const std::string& mismatch() const noexcept { return mismatch_; }
  /// The run is over: sets mismatch() if part of the trace is unused.
  void expect_end();

 private:
  enum class mode : std::uint8_t { seeded, planned, repeated };
  std::uint64_t planned_pick(std::uint64_t options) noexcept;
  std::uint64_t repeated_pick(std::uint32_t options);
  std::uint64_t decided(std::uint32_t options, std::uint64_t seeded);
  std::uint64_t settle(std::uint32_t options, std::uint64_t pick);
  void place_drops();

  sim::strategy strategy_;
  sim::strategy named_;  // the one named in the trace
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
  /// pct: the choice among strands at which the best one drops to a low rank.
  struct drop {
    std::uint64_t at;
    std::uint16_t rank;
  };
  std::vector<drop> drops_;  // the next drop is the last element
  std::uint64_t asked_ = 0;  // choices among strands so far
  std::string mismatch_;
};

}  // namespace weir::detail
