// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/events.hpp>

namespace weir::detail {

/// The last events of a loop, and whoever watches them.
///
/// Bounded: the ring keeps `capacity` events and counts what it forgot; an object's name longer
/// than a cell is cut. Emitting allocates nothing, but for the first event with an error.
class event_ring {
 public:
  event_ring();
  event_ring(const event_ring&) = delete;
  event_ring& operator=(const event_ring&) = delete;
  ~event_ring();
  void emit(time_point when, std::string_view name, std::string_view object, std::uint64_t number,
            scope_id scope, const std::exception_ptr& error, bool keep_error) noexcept;
  void add(event_observer& observer) noexcept;
  void remove(event_observer& observer) noexcept;
  event_log recent() const;
  /// Drops the errors of events that were forgotten. Not where they are overwritten: their
  /// destructors are user code.
  void drop_old_errors() noexcept {
    while (!old_errors_.empty()) {
      auto gone = std::exchange(old_errors_, {});
      gone.clear();  // they may emit events, which put the next ones here
      if (old_errors_.empty()) return old_errors_.swap(gone);  // its memory is used again
    }
  }

  static constexpr std::size_t capacity = 1024;

 private:
  // Trivial, so that making the ring touches none of it.
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
  std::vector<std::exception_ptr> errors_;  // of the cells; empty: there was none yet
  std::vector<std::exception_ptr> old_errors_;
};

}  // namespace weir::detail
