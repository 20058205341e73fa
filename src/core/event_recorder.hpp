// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/loop_events.hpp>

namespace weir::detail {

/// The most recent events of a loop, and its observers.
///
/// Bounded: keeps `capacity` events and counts the dropped ones; long object names are
/// truncated. Emitting allocates only to keep errors.
class event_recorder {
 public:
  event_recorder();
  event_recorder(const event_recorder&) = delete;
  event_recorder& operator=(const event_recorder&) = delete;
  ~event_recorder();
  void emit(time_point when, std::string_view name, std::string_view object, std::uint64_t number,
            scope_id scope, const std::exception_ptr& error, bool keep_error) noexcept;
  void add(event_observer& observer) noexcept;
  void remove(event_observer& observer) noexcept;
  event_log recent() const;
  /// Destroys the errors of overwritten events. Not done on overwriting: their destructors are user
  /// code.
  void drop_old_errors() noexcept {
    while (!old_errors_.empty()) {
      auto gone = std::exchange(old_errors_, {});
      gone.clear();  // destructors may emit events, which add to old_errors_
      if (old_errors_.empty()) return old_errors_.swap(gone);  // reuses its memory
    }
  }

  static constexpr std::size_t capacity = 1024;

 private:
  // Trivial, so that constructing a recorder does not touch the cells.
  struct cell {
    const char* name;
    std::size_t name_size;
    std::array<char, 48> object;
    std::size_t object_size;
    std::uint64_t number;
    std::int64_t when_ns;
    scope_id scope;
  };
  using storage = std::array<cell, capacity>;
  void keep(const event_info& e) noexcept;
  void keep_error(const std::exception_ptr& error, std::size_t at) noexcept;
  static std::unique_ptr<storage>& spare() noexcept;

  std::unique_ptr<storage> cells_;
  std::uint64_t emitted_ = 0;
  std::uint64_t failed_observers_ = 0;
  event_observer* observers_ = nullptr;
  std::vector<std::exception_ptr> errors_;  // one per cell; empty until the first error
  std::vector<std::exception_ptr> old_errors_;
};

}  // namespace weir::detail
