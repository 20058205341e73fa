// SPDX-License-Identifier: MIT
#pragma once

#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/generator.hpp>

namespace weir::detail {

/// Holds a generator in flight while no pull is pending: a service of the scope around the pull
/// that left it. It has no frames. It ends when the generator is quiet; cancelling it cancels the
/// generator.
///
/// Invariants:
/// 1. Until the generator is quiet, the carrier is parked, and the generator's region is the only
///    one inside its own.
/// 2. It owns a generator whose stream was destroyed (`dropped_`).
struct generator_carrier final : fiber_of<void>, entry {
  static generator_carrier* start(generator_base& g);
  void landed() noexcept;

  bool begin() override { return false; }
  void drop_operation() noexcept override;
  void dispose() noexcept override { delete this; }
  fiber* service() noexcept override { return this; }
  void discard() noexcept override {}

 private:
  explicit generator_carrier(generator_base& g) noexcept;

  struct flight_wait final : local_wait {
    explicit flight_wait(generator_carrier& c) noexcept : of(&c) {}
    bool poll() override { return of->of_ == nullptr; }
    void link() override {}
    cancel_result withdraw() noexcept override;
    void describe(dump_line& line) const override;
    void blockers(blocker_list& list) const override;
    void end() noexcept { complete(); }
    generator_carrier* of;
  };

  generator_base* of_;
  flight_wait wait_{*this};
};

}  // namespace weir::detail
