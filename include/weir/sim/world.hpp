// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include <weir/detail/core/op.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/loop_ref.hpp>
#include <weir/scope.hpp>
#include <weir/sim/disk.hpp>
#include <weir/sim/network.hpp>
#include <weir/sim/sim_disk.hpp>
#include <weir/sim/trace.hpp>

namespace weir {

namespace sim {
class world;
}

namespace detail {

class simulation;
struct world_maker;

template <class F>
concept world_program = !operation<F> && std::is_invocable_v<std::decay_t<F>&, sim::world&>;
template <class F>
concept simulated_program = operation<F> || world_program<F>;

}  // namespace detail

namespace sim {

struct options {
  std::uint64_t seed = 0;
  sim::strategy strategy = sim::fifo;
  std::int64_t max_steps = unbounded;
  wall_time start_time = std::chrono::sys_days(std::chrono::year(2000) / 1 / 1);
};

/// The run itself failed, rather than the program: errc::deadlock, livelock, leak or
/// always_violated. The tree at that moment is in `what()`.
class failure : public error {
 public:
  failure(errc code, const std::string& what) : error(code, what) {}
};

/// Several loops on one thread, on one virtual clock, with one seeded chooser, one disk and
/// one network.
///
/// A world belongs to its thread. Its named loops live until they are crashed or the world ends;
/// each `run` has its own loop ("main"), and time continues from one `run` to the next.
class world {
 public:
  explicit world(const options& options = {});
  world(world&) = delete;  // not of const: that would make world({}) ambiguous
  world& operator=(const world&) = delete;
  ~world();

  /// Runs `op` (an operation, or a callable that takes this world and returns one), and everything
  /// on the other loops, until `op` has ended. Returns and throws like sim::run.
  template <detail::simulated_program Op>
  auto run(Op&& op, std::source_location site = std::source_location::current()) {
    if constexpr (detail::operation<Op>) {
      return run_operation(std::forward<Op>(op), site);
    } else {
      return run_operation([&] { return op(*this); }, site);
    }
  }

  /// The loop of that name; created if there is none or it was crashed.
  loop_ref loop(std::string_view name);
  /// Ends a loop as if its process had died: its frames are destroyed (kind `evicted`), calls of
  /// weir by their destructors have no effect, and no other code of it runs, no defer, no catch.
  /// Messages in flight to it are refused, its unsynced writes are lost, its locks are released,
  /// its connections are reset. The running loop and "main" cannot be crashed:
  /// errc::invalid_argument.
  void crash(std::string_view name);
  /// The loop does not run for so long, while time goes on, as after SIGSTOP: nothing of it is
  /// called, its timers fire late, its connections stay open. A second pause can only prolong the
  /// first. An unknown name, a negative `d`: errc::invalid_argument.
  void pause(std::string_view name, duration d);
  /// The CPU pressure that load_governor reads, in per cent; initially none.
  void set_cpu_pressure(std::optional<double> percent) noexcept;
  /// Sets the wall clock (weir::wall_now) forward, or back by a negative `d`: a suspended machine,
  /// a step of NTP. Virtual time is not affected.
  void shift_wall_clock(duration d) noexcept;
  /// The disk of this world; its faults are off until set.
  simulated_disk& disk() noexcept;
  /// The network of this world; its faults are off until set.
  sim::network& network() noexcept;

 private:
  friend struct detail::world_maker;
  /// The second parameter distinguishes it from world({}).
  world(std::unique_ptr<detail::simulation> core, detail::simulation*) noexcept;

  template <class Op>
  auto run_operation(Op&& op, std::source_location site) {
    using value = detail::result_t<Op>;
    auto* root = scope::make(std::forward<Op>(op));
    const detail::core_ref keep(root);
    run_root(*root, site);
    return static_cast<outcome<value>&>(root->result()).take();
  }
  void run_root(detail::fiber& root, std::source_location site);

  std::unique_ptr<detail::simulation> core_;
};

/// An invariant that must hold whenever it is reached. A violation is recorded, so that no `catch`
/// hides it, and throws sim::failure (also outside a simulation).
void always(std::string_view name, bool condition);
/// Must hold at least once over all runs of `explore`. Does nothing outside a simulation.
void sometimes(std::string_view name, bool condition);

}  // namespace sim
}  // namespace weir
