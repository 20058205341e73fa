// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <weir/duration.hpp>

namespace weir::sim {

/// How the next step is chosen. A *preemption* is any choice but the first, which is what
/// production would do: continue the running fiber if its await was ready; else run what has been
/// ready longest.
struct strategy {
  enum class kind : std::uint8_t { fifo, random, pct, dfs };
  kind what = kind::fifo;
  int depth = 0;
  friend bool operator==(const strategy&, const strategy&) = default;
};

/// Production order: always the first choice.
inline constexpr strategy fifo{strategy::kind::fifo, 0};
/// Uniformly random; every await may give up the turn.
inline constexpr strategy random{strategy::kind::random, 0};
/// Probabilistic concurrency testing: fibers have random priorities, the highest one runs, and
/// `depth - 1` times in a run the running one drops to the bottom. Finds a bug that needs `depth`
/// ordered steps with a probability that hardly depends on the size of the program. `depth` is at
/// least 1.
constexpr strategy pct(int depth) noexcept { return {strategy::kind::pct, depth}; }
/// Every run with no preemption, then every run with one, up to `preemptions`. For `explore` only.
constexpr strategy dfs(int preemptions) noexcept { return {strategy::kind::dfs, preemptions}; }

/// "fifo", "random", "pct(3)", "dfs(2)".
std::string to_string(const strategy& s);

/// The choices of a run, in order: enough to repeat it exactly.
///
/// As text it is one line: `weir-trace 1 <strategy> seed=<seed> steps=<limit> : <choices>`, where
/// the step limit is omitted if there was none, and the choices are `3*14` (fourteen times the
/// first of three), `2/3` (the third of three, counted from 0), `r1f` (a random number, in
/// hexadecimal), `f` (a fault was injected) and `-7` (seven times it was not). `?` in place of the
/// choices: they are not known (the process died), and the seed decides.
class trace {
 public:
  /// One choice. `of` is the number of options, or one of the two marks below.
  struct choice {
    std::uint64_t pick = 0;
    std::uint32_t of = 0;
    friend bool operator==(const choice&, const choice&) = default;
  };
  static constexpr std::uint32_t random_number = 0;  ///< `pick` is the number itself
  static constexpr std::uint32_t fault = 1;          ///< `pick` is 1 if the fault was injected

  trace() = default;
  trace(sim::strategy strategy, std::uint64_t seed, std::vector<choice> choices,
        std::int64_t max_steps = unbounded);
  /// The trace of a run whose choices are not known.
  static trace of_seed(sim::strategy strategy, std::uint64_t seed,
                       std::int64_t max_steps = unbounded);

  /// Reads what `text` printed; anything else is errc::invalid_argument with the place.
  static trace parse(std::string_view text);
  std::string text() const;

  const sim::strategy& strategy() const noexcept { return strategy_; }
  std::uint64_t seed() const noexcept { return seed_; }
  /// The step limit of that run.
  std::int64_t max_steps() const noexcept { return max_steps_; }
  const std::vector<choice>& choices() const noexcept { return choices_; }
  bool has_choices() const noexcept { return known_; }
  /// How many choices were not the first, injected faults included.
  std::size_t preemptions() const noexcept;

  friend bool operator==(const trace&, const trace&) = default;
  friend std::ostream& operator<<(std::ostream& out, const trace& t);

 private:
  sim::strategy strategy_{};
  std::uint64_t seed_ = 0;
  std::int64_t max_steps_ = unbounded;
  bool known_ = false;
  std::vector<choice> choices_;
};

}  // namespace weir::sim
