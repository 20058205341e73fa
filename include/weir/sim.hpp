// SPDX-License-Identifier: MIT
// Simulation: the production scheduler on virtual time, with a seeded choice of what runs next.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

#include <weir/detail/op.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/run.hpp>

namespace weir {

namespace detail {
struct test_clock_state;
}

/// A clock that is moved by hand, for a real loop: `weir::run({.clock = &clock}, op)`.
///
/// `advance` may be called by the program or by another thread and returns at once; the clock then
/// moves timer by timer, each when nothing is ready, and straight to the target if no timer lies
/// before it.
class test_clock {
 public:
  test_clock();
  test_clock(const test_clock&) = delete;
  test_clock& operator=(const test_clock&) = delete;
  ~test_clock();

  /// Lets `d` pass; a negative one is errc::invalid_argument.
  void advance(duration d);
  /// Jumps to the next timer whenever nothing is ready.
  void auto_advance(bool on);
  time_point now() const;

  detail::test_clock_state& state() noexcept { return *state_; }

 private:
  std::shared_ptr<detail::test_clock_state> state_;
};

namespace sim {

/// How the next thing to run is chosen.
struct strategy {
  enum class sort : std::uint8_t { fifo, random };
  sort kind = sort::fifo;
  friend bool operator==(const strategy&, const strategy&) = default;
};
/// In the order of production.
inline constexpr strategy fifo{strategy::sort::fifo};
/// Any ready fiber, drawn from the seed; every await may give up the turn.
inline constexpr strategy random{strategy::sort::random};

struct options {
  std::uint64_t seed = 0;
  sim::strategy strategy = sim::fifo;
  std::int64_t max_steps = unbounded;
  wall_time start_time = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
};

/// The run itself failed, rather than the program: deadlock, livelock. The tree is in `what()`.
class failure : public error {
 public:
  failure(errc code, const std::string& what) : error(code, what) {}
};

}  // namespace sim

namespace detail {

/// A simulated world for one run; defined in src/sim.
class sim_environment;
struct delete_sim_environment {
  void operator()(sim_environment* env) const noexcept;
};
using sim_environment_ptr = std::unique_ptr<sim_environment, delete_sim_environment>;
sim_environment_ptr make_sim_environment(const sim::options& options);
environment* as_environment(sim_environment& env) noexcept;
void rethrow_as_sim_failure();

}  // namespace detail

namespace sim {

/// Runs `op` like weir::run, on virtual time: sleeping for a day takes microseconds. Time jumps to
/// the next timer when nothing is ready. The same seed, strategy and program give the same run.
template <detail::operation Op>
auto run(const sim::options& options, Op&& op,
         std::source_location site = std::source_location::current()) {
  const auto env = detail::make_sim_environment(options);
  try {
    return detail::run_on({.name = "sim"}, detail::as_environment(*env), std::forward<Op>(op),
                          site);
  } catch (const error&) {
    detail::rethrow_as_sim_failure();
    throw;
  }
}

}  // namespace sim
}  // namespace weir
