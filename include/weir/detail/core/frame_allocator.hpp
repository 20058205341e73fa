// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <weir/detail/core/frame.hpp>

namespace weir::detail {

/// Allocates from the frame cache, for containers with short-lived nodes.
template <class T>
struct frame_allocator {
  using value_type = T;
  frame_allocator() noexcept = default;
  template <class U>
  explicit(false) frame_allocator(const frame_allocator<U>&) noexcept {}
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_frame(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept {
    deallocate_frame(static_cast<void*>(memory), count * sizeof(T));
  }
  friend bool operator==(const frame_allocator&, const frame_allocator&) noexcept { return true; }
};

}  // namespace weir::detail
