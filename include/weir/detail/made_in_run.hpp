// SPDX-License-Identifier: MIT
// Durable runs, and the objects without a home, which any thread may use.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

#include <weir/detail/home.hpp>

namespace weir::detail {

/// errc::not_journaled: a durable run uses something outside of a step. `site`, if it is known, is
/// the line that does it. REQUIRES: run_here.
[[noreturn]] void refuse_in_run(const char* kind, std::string_view name = {},
                                std::source_location site = {});

/// The check of what can never belong to a run, because other threads have a part in it. From a run
/// that is being destroyed nothing gets out anyway.
inline void require_no_run(const char* kind, std::string_view name = {},
                           std::source_location site = {}) {
  if (run_here != nullptr && !crashing) [[unlikely]]
    refuse_in_run(kind, name, site);
}

/// By which durable run an object without a home was made, if by any. Only that run may use it, and
/// a run may use no other: so what it sees of the object is the same when it is replayed.
///
/// It is the life of the run in memory that counts: what a replay finds of an earlier life is not
/// its own either.
class made_in_run {
 public:
  made_in_run() noexcept : serial_(run_serial) {}
  made_in_run(const made_in_run&) = delete;
  made_in_run& operator=(const made_in_run&) = delete;

  /// The quick check before each use; if it says no, `refuse` says why.
  bool is_here() const noexcept { return serial_ == run_serial; }
  /// errc::not_journaled.
  [[noreturn]] void refuse(const object_name& whose) const;
  void require_here(const object_name& whose) const {
    if (!is_here()) [[unlikely]]
      refuse(whose);
  }
  /// The number of the run's inner loop; 0: no run made it.
  std::uint32_t serial() const noexcept { return serial_; }

 private:
  std::uint32_t serial_;
};

}  // namespace weir::detail
