// SPDX-License-Identifier: MIT
// Part of <weir/sim/explore.hpp>, which includes it after the declarations it needs.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <weir/run.hpp>

namespace weir {

namespace detail {

/// A program that can be run repeatedly, each time in a new world.
class program {
 public:
  program() = default;
  program(const program&) = delete;
  program& operator=(const program&) = delete;
  virtual void run(sim::world& in) = 0;

 protected:
  ~program() = default;
};

template <class F>
class program_of final : public program {
 public:
  program_of(F& fn, std::source_location site) : fn_(fn), site_(site) {
    if (is_empty_callable(fn)) raise_empty_job();
  }
  // By reference: the callable may keep state from one run to the next.
  void run(sim::world& in) override {
    if constexpr (std::is_invocable_v<F&>) {
      (void)in.run([this] { return fn_(); }, site_);
    } else if constexpr (std::is_invocable_v<F&, context&>) {
      (void)in.run([this](context& c) { return fn_(c); }, site_);
    } else {
      (void)in.run(fn_, site_);
    }
  }

 private:
  F& fn_;
  std::source_location site_;
};

sim::report explore(const sim::explore_options& options, program& what);
/// Worlds that repeat a run: the first from a trace, the second from a seed, ignoring environment
/// variables.
sim::world make_replay(const sim::trace& trace);
sim::world make_replay(std::uint64_t seed, sim::strategy strategy);

}  // namespace detail
}  // namespace weir
