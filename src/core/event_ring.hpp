// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include <weir/event.hpp>

namespace weir::detail {

/// The last events of a loop, and whoever watches them.
///
/// Bounded: the ring keeps `capacity` events and counts what it forgot; an object's name longer
/// than a cell is cut. Emitting allocates nothing.
class event_ring {
 public:
  void emit(time_point when, std::string_view name, std::string_view object, std::uint64_t number,
            scope_id scope) noexcept;
  void add(event_observer& observer) noexcept;
  void remove(event_observer& observer) noexcept;
  event_log recent() const;
  std::uint64_t failed_observers() const noexcept { return failed_observers_; }

  static constexpr std::size_t capacity = 1024;

 private:
  struct cell {
    const char* name = nullptr;
    std::size_t name_size = 0;
    std::array<char, 48> object{};
    std::size_t object_size = 0;
    std::uint64_t number = 0;
    time_point when{};
    scope_id scope = 0;
  };

  // Made when the first event happens: most loops of a simulation have none.
  std::unique_ptr<std::array<cell, capacity>> cells_;
  std::uint64_t emitted_ = 0;
  std::uint64_t failed_observers_ = 0;
  event_observer* observers_ = nullptr;
};

}  // namespace weir::detail
