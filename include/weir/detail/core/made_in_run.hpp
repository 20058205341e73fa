// SPDX-License-Identifier: MIT
// Checks for objects without a home, which any thread may use, in durable runs.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

#include <weir/detail/core/home.hpp>

namespace weir::detail {

/// Throws errc::not_journaled: a durable run uses a forbidden object outside of a step. `site`, if
/// known, is the line of that use. REQUIRES: current_run.
[[noreturn]] void refuse_in_run(const char* kind, std::string_view name = {},
                                std::source_location site = {});

/// The check of objects that can never belong to a run, because other threads take part in them. A
/// run that is being destroyed is exempt: nothing it does has an effect outside.
inline void require_no_run(const char* kind, std::string_view name = {},
                           std::source_location site = {}) {
  if (current_run != nullptr && !crashing) [[unlikely]]
    refuse_in_run(kind, name, site);
}

/// The durable run, if any, that created an object without a home. Only that run may use it, and a
/// run may use only its own: so a replay sees the same state of the object.
///
/// A run is identified by its current life in memory: objects of an earlier life do not belong to
/// it either.
class made_in_run {
 public:
  made_in_run() noexcept : serial_(run_serial) {}
  made_in_run(const made_in_run&) = delete;
  made_in_run& operator=(const made_in_run&) = delete;

  /// The quick check before each use; if it fails, call `refuse`.
  bool is_here() const noexcept { return serial_ == run_serial; }
  /// Throws errc::not_journaled.
  [[noreturn]] void refuse(const object_name& whose) const;
  void require_here(const object_name& whose) const {
    if (!is_here()) [[unlikely]]
      refuse(whose);
  }
  /// The number of the run's inner loop; 0: not created by a run.
  std::uint32_t serial() const noexcept { return serial_; }

 private:
  std::uint32_t serial_;
};

}  // namespace weir::detail
