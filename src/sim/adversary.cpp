// SPDX-License-Identifier: MIT
#include "sim/adversary.hpp"

#include <algorithm>

namespace weir::detail {

namespace {

constexpr unsigned shortest_horizon_bits = 2;
constexpr unsigned longest_horizon_bits = 13;
constexpr std::uint64_t ranks = 60'000;

std::string describe_choice(std::uint32_t options) {
  if (options == sim::trace::random_number) return "a random number";
  if (options == sim::trace::fault) return "whether a fault strikes";
  return "one of " + std::to_string(options);
}

}  // namespace

adversary::adversary(sim::strategy strategy, std::uint64_t seed)
    : strategy_(strategy),
      named_(strategy),
      seed_(seed),
      mode_(mode::seeded),
      choices_(seed),
      numbers_(~seed) {
  if (strategy_.what == sim::strategy::kind::pct) place_drops();
}

adversary::adversary(sim::strategy strategy, std::uint64_t seed, std::vector<preemption> plan)
    : strategy_(strategy),
      named_(strategy),
      seed_(seed),
      mode_(mode::planned),
      choices_(seed),
      numbers_(~seed),
      plan_(std::move(plan)) {}

adversary::adversary(const sim::trace& repeated)
    : adversary(repeated.strategy(), repeated.seed(), std::vector<preemption>()) {
  mode_ = repeated.has_choices() ? mode::repeated : mode::seeded;
  repeated_ = repeated.choices();
  if (mode_ == mode::seeded && strategy_.what == sim::strategy::kind::pct) place_drops();
}

adversary adversary::otherwise(sim::strategy how, std::uint64_t choices, sim::strategy strategy,
                               std::uint64_t seed) {
  adversary made(how, choices);
  made.named_ = strategy;
  made.seed_ = seed;
  made.numbers_ = random_numbers(~seed);
  return made;
}

// The length of the run is unknown and must not be learnt from other runs, so the horizon within
// which ranks drop is drawn, too, with the same probability for every order of magnitude.
void adversary::place_drops() {
  const std::uint64_t bits =
      shortest_horizon_bits + choices_.below(longest_horizon_bits - shortest_horizon_bits + 1);
  // Below every rank drawn in enrol(), above that of a demoted strand (1).
  for (int i = 1; i < strategy_.depth; ++i)
    drops_.push_back({1 + choices_.below(std::uint64_t{1} << bits), 0});
  std::sort(drops_.begin(), drops_.end(), [](const drop& a, const drop& b) { return a.at > b.at; });
  std::uint16_t rank = 1;
  for (drop& d : drops_) d.rank = ++rank;
  // The order among dropped strands is random.
  for (std::size_t i = drops_.size(); i > 1; --i)
    std::swap(drops_[i - 1].rank, drops_[choices_.below(i)].rank);
}

void adversary::enrol(const ready_item& item) noexcept {
  if (strategy_.what != sim::strategy::kind::pct || mode_ != mode::seeded || item.kept_rank() != 0)
    return;
  item.kept_rank() = static_cast<std::uint16_t>(static_cast<std::uint64_t>(strategy_.depth) + 1 +
                                                choices_.below(ranks - 1));
}

void adversary::demote(ready_list& ready) noexcept {
  if (strategy_.what == sim::strategy::kind::pct && mode_ == mode::seeded)
    ready.set_rank(ready.best(), 1);
}

std::size_t adversary::choose(std::size_t options) {
  if (options < 2 || frozen_) return 0;
  const bool drawn = mode_ == mode::seeded && strategy_.what != sim::strategy::kind::fifo;
  return static_cast<std::size_t>(
      decided(static_cast<std::uint32_t>(options), drawn ? choices_.below(options) : 0));
}

std::size_t adversary::choose(ready_list& ready) {
  if (strategy_.what != sim::strategy::kind::pct || mode_ != mode::seeded || frozen_ ||
      ready.size() < 2)
    return ready.index_of(choose(ready.size()));
  ++asked_;
  for (; !drops_.empty() && drops_.back().at <= asked_; drops_.pop_back())
    ready.set_rank(ready.best(), drops_.back().rank);
  const std::size_t best = ready.option_of(ready.best());
  return ready.index_of(
      static_cast<std::size_t>(decided(static_cast<std::uint32_t>(ready.size()), best)));
}

std::uint64_t adversary::number() {
  const std::uint64_t drawn = numbers_.next();
  if (frozen_) return drawn;
  return settle(sim::trace::random_number,
                mode_ == mode::repeated ? repeated_pick(sim::trace::random_number) : drawn);
}

bool adversary::chance(double rate) {
  if (rate <= 0 || frozen_) return false;
  if (rate >= 1) return true;  // certain: not a choice
  // A double holds 53 bits; the comparison gives the same result on every machine.
  const bool seeded = mode_ == mode::seeded &&
                      static_cast<double>(choices_.next() >> 11) < rate * 9007199254740992.0;
  return decided(sim::trace::fault, seeded ? 1 : 0) != 0;
}

std::uint64_t adversary::decided(std::uint32_t options, std::uint64_t seeded) {
  switch (mode_) {
    case mode::planned:
      return settle(options, planned_pick(std::max<std::uint32_t>(options, 2)));
    case mode::repeated:
      return settle(options, repeated_pick(options));
    case mode::seeded:
      break;
  }
  return settle(options, seeded);
}

// The plan was made for a run with other earlier choices: a pick that does not fit becomes 0.
std::uint64_t adversary::planned_pick(std::uint64_t options) noexcept {
  while (next_planned_ < plan_.size() && plan_[next_planned_].at < position_) ++next_planned_;
  if (next_planned_ == plan_.size() || plan_[next_planned_].at != position_) return 0;
  const std::uint64_t pick = plan_[next_planned_++].pick;
  return pick < options ? pick : 0;
}

std::uint64_t adversary::repeated_pick(std::uint32_t options) {
  if (!mismatch_.empty()) return 0;
  if (position_ < repeated_.size()) {
    const sim::trace::choice& said = repeated_[position_];
    const bool possible =
        options == sim::trace::random_number || said.pick < std::max<std::uint32_t>(options, 2);
    if (said.of == options && possible) return said.pick;
  }
  mismatch_ = "choice " + std::to_string(position_ + 1) + " of the run is " +
              describe_choice(options) + ", but the trace ";
  if (position_ == repeated_.size()) {
    mismatch_.append("ends");
  } else {
    mismatch_.append("has ").append(describe_choice(repeated_[position_].of));
  }
  return 0;
}

std::uint64_t adversary::settle(std::uint32_t options, std::uint64_t pick) {
  ++position_;
  if (writing_) made_.push_back({pick, options});
  return pick;
}

void adversary::expect_end() {
  if (mode_ == mode::repeated && !frozen_ && mismatch_.empty() && position_ != repeated_.size())
    mismatch_ = "the run ended after " + std::to_string(position_) + " of the trace's " +
                std::to_string(repeated_.size()) + " choices";
}

}  // namespace weir::detail
