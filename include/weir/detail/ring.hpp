// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weir::detail {

/// A circular buffer that doubles when it is full. Elements are constructed in place and never
/// moved except when it grows; if that throws, nothing has changed.
template <class T>
class ring {
 public:
  ring() noexcept = default;
  ring(ring&& other) noexcept
      : slots_(std::exchange(other.slots_, nullptr)),
        room_(std::exchange(other.room_, 0)),
        head_(std::exchange(other.head_, 0)),
        size_(std::exchange(other.size_, 0)) {}
  ring& operator=(ring&& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(room_, other.room_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ring() {
    clear();
    free_slots(slots_, room_);
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  T& front() noexcept { return slots_[head_]; }
  const T& front() const noexcept { return slots_[head_]; }
  T& operator[](std::size_t i) noexcept { return slots_[(head_ + i) & (room_ - 1)]; }

  template <class U>
  void push_back(U&& value) {
    if (size_ == room_) [[unlikely]]
      grow();
    ::new (static_cast<void*>(slots_ + ((head_ + size_) & (room_ - 1)))) T(std::forward<U>(value));
    ++size_;
  }
  template <class U>
  void push_front(U&& value) {
    if (size_ == room_) grow();
    const std::size_t at = (head_ + room_ - 1) & (room_ - 1);
    ::new (static_cast<void*>(slots_ + at)) T(std::forward<U>(value));
    head_ = at;
    ++size_;
  }
  void pop_front() noexcept {
    slots_[head_].~T();
    head_ = (head_ + 1) & (room_ - 1);
    --size_;
  }
  void clear() noexcept {
    while (size_ > 0) pop_front();
  }

 private:
  static T* make_slots(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignof(T))));
  }
  static void free_slots(T* slots, std::size_t count) noexcept {
    if (slots != nullptr) ::operator delete(slots, count * sizeof(T), std::align_val_t(alignof(T)));
  }
  void grow() {
    const std::size_t room = room_ == 0 ? 4 : room_ * 2;
    T* const slots = make_slots(room);
    std::size_t moved = 0;
    try {
      for (; moved < size_; ++moved)
        ::new (static_cast<void*>(slots + moved)) T(std::move_if_noexcept((*this)[moved]));
    } catch (...) {
      std::destroy_n(slots, moved);
      free_slots(slots, room);
      throw;
    }
    const std::size_t count = size_;
    clear();
    free_slots(slots_, room_);
    slots_ = slots;
    room_ = room;
    head_ = 0;
    size_ = count;
  }

  T* slots_ = nullptr;
  std::size_t room_ = 0;  // 0 or a power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weir::detail
