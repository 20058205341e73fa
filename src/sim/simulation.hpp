// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/sim/disk.hpp>
#include <weir/sim/network.hpp>
#include <weir/sim/sim_disk.hpp>
#include <weir/sim/world.hpp>

#include "core/environment.hpp"
#include "core/served_loop.hpp"
#include "core/session.hpp"
#include "sim/adversary.hpp"
#include "sim/network.hpp"
#include "sim/ready_list.hpp"

namespace weir::detail {

/// A loop of a simulation.
struct hosted_loop {
  hosted_loop(environment& env, const run_options& options, fiber& root, std::source_location site)
      : tree(env, options, root, site) {}
  loop& here() noexcept { return tree.here(); }
  std::string_view name() noexcept { return here().own_door().name(); }

  /// See loop::finished.
  bool finished() {
    const active_loop active(here());
    return here().finished();
  }

  session tree;
  std::shared_ptr<served_loop> served;  // notified when the loop has ended
  std::uint16_t rank = 0;               // of its inbox, see adversary
  bool inbox_listed = false;            // its inbox is in the ready list
  bool asleep = false;  // its inbox is asleep: as with a real loop, only the doorbell wakes it
  std::optional<time_point> paused_until;
  std::vector<ready_item> set_aside;  // was ready when it was paused
};

/// Why a run failed, other than by an error of the program.
struct sim_verdict {
  errc code{};
  std::string message;
  std::string tree;
};

/// A world: its loops, clock, adversary, disk and network. It is the environment of all its loops
/// and drives them step by step, one loop at a time, on one thread.
///
/// Invariants:
/// 1. The possible next steps are in `ready_`: strands in the order in which they were pushed, and
///    one item for the inbox of each loop that has messages (one delivery each).
/// 2. Time advances only when `ready_` is empty, to the earliest timer of all loops, the next
/// arrival
///    in the network, or the end of a pause.
/// 3. After a deadlock, livelock or leak no more choices are made: the rest runs in order and is
///    not recorded. After a violated `always` the run continues normally.
/// 4. A paused loop makes no step and fires no timer. What is ready there is set aside, or stays in
///    its queue and its inbox.
class simulation final : public environment, private disk_host, private network_host {
 public:
  simulation(const sim::options& options, adversary chooser);
  ~simulation() override;

  // As environment of its loops.
  time_point now() override { return now_; }
  wall_time wall_now() override;
  duration wall_check() const noexcept override { return unbounded; }
  void shift_wall_clock(duration d) noexcept;
  std::uint64_t random() override { return adversary_.number(); }
  std::optional<double> cpu_pressure() override { return cpu_pressure_; }
  void park(loop&, std::optional<time_point>) override {}
  std::int16_t budget() const noexcept override { return budget_; }
  void frame_failed(const std::exception_ptr& error) noexcept override;
  void post_failed(const std::exception_ptr& error) noexcept override {
    if (!uncaught_) uncaught_ = error;
  }
  std::string dump(loop&) override { return dump_all(); }
  void start(const std::shared_ptr<served_loop>& made) override;
  const void* clock() const noexcept override { return this; }
  bool simulated() const noexcept override { return true; }

  /// Runs `root` to its end on its own loop. Throws verdicts, trace mismatches, and the first error
  /// that left a posted function.
  void run(fiber& root, std::source_location site);
  loop_ref named_loop(std::string_view name);
  void crash(std::string_view name);
  void pause(std::string_view name, duration d);
  sim::simulated_disk& disk() noexcept { return disk_; }
  sim::network& network() noexcept { return network_; }
  network_state& wires() noexcept { return wires_; }
  void set_cpu_pressure(std::optional<double> percent) noexcept { cpu_pressure_ = percent; }

  void always_violated(std::string_view name);
  void sometimes(std::string_view name, bool condition);

  // For explore.

  /// Records the trace. watch_errors() keeps the tree at the moment the last error was thrown.
  void record() { adversary_.write_down(true); }
  void watch_errors() noexcept { watches_errors_ = true; }
  sim::trace take_trace() { return adversary_.take_trace(options_.max_steps); }
  const std::optional<sim_verdict>& verdict() const noexcept { return verdict_; }
  const std::string& tree_of_error() const noexcept { return error_tree_; }
  const std::map<std::string, bool, std::less<>>& sometimes_seen() const noexcept { return seen_; }
  std::int64_t steps() const noexcept { return steps_; }

 private:
  // As host of the disk and of the network.
  bool chance(double rate) override { return adversary_.chance(rate); }
  std::uint64_t below(std::uint64_t n) override { return n < 2 ? 0 : adversary_.number() % n; }
  std::size_t choose(std::size_t options) override { return adversary_.choose(options); }
  std::uint32_t owner() const noexcept override { return current_loop_serial(); }
  bool dead() const noexcept override { return in_dead_world(); }

  hosted_loop& add(std::string_view name, fiber& root, std::source_location site);
  void remove(hosted_loop& gone);
  void evict(hosted_loop& victim);
  hosted_loop* find(std::string_view name) noexcept;
  void drive();
  void step();
  std::size_t pick();
  void collect(hosted_loop& from);
  void notice_messages();
  bool fire_due();
  bool jump();
  time_point next_step_of(hosted_loop& h);
  bool end_pauses(time_point at);
  void stuck();
  void give_up();
  void fail(errc code, std::string message, std::string tree);
  void look_for_leaks();
  std::string dump_all();
  [[noreturn]] void raise_verdict() const;

  sim::options options_;
  adversary adversary_;
  std::int16_t budget_;
  time_point now_{};
  duration wall_shift_{};  // total adjustment of the wall clock
  std::optional<double> cpu_pressure_;
  std::int64_t steps_ = 0;
  sim::simulated_disk disk_;  // outlives the files that the loops have open
  network_state wires_;       // outlives the ends and ports of the loops
  sim::network network_;
  std::list<hosted_loop> loops_;
  hosted_loop* main_ = nullptr;    // of the current run
  std::int64_t steps_before_ = 0;  // of earlier runs
  bool deadlocked_ = false;        // the program was asked to end
  ready_list ready_;
  std::optional<sim_verdict> verdict_;
  std::map<std::string, bool, std::less<>> seen_;
  std::exception_ptr uncaught_;  // the first that left a posted function
  bool watches_errors_ = false;
  std::exception_ptr last_error_;
  std::string error_tree_;
};

/// Makes a world from a simulation that was not set up by sim::options.
struct world_maker {
  static sim::world of(std::unique_ptr<simulation> core) { return {std::move(core), nullptr}; }
};

}  // namespace weir::detail
