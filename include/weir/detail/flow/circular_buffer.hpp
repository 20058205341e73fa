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
///
/// The destructor of an element may use the circular_buffer that it was in, or destroy it: an
/// element leaves the circular_buffer before it is destroyed, and its slot is reused only after its
/// destructor has returned. So the slots right before `head_` may hold elements that are being
/// destroyed, one inside the destructor of another; `limit_` is the rest of `room_`.
template <class T>
class circular_buffer {
 public:
  circular_buffer() noexcept = default;
  circular_buffer(circular_buffer&& other) noexcept { swap(other); }
  circular_buffer& operator=(circular_buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~circular_buffer() {
    while (size_ > 0) clear();
    leave_slots();
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  T& front() noexcept { return slots_[head_]; }
  const T& front() const noexcept { return slots_[head_]; }
  T& operator[](std::size_t i) noexcept { return slots_[(head_ + i) & (room_ - 1)]; }

  template <class U>
  void push_back(U&& value) {
    if (size_ == limit_) [[unlikely]]
      return push_growing(size_, std::forward<U>(value));
    ::new (static_cast<void*>(slots_ + ((head_ + size_) & (room_ - 1)))) T(std::forward<U>(value));
    ++size_;
  }
  template <class U>
  void push_front(U&& value) {
    if (size_ == limit_ || leaving_ != nullptr) return push_growing(0, std::forward<U>(value));
    const std::size_t at = (head_ + room_ - 1) & (room_ - 1);
    ::new (static_cast<void*>(slots_ + at)) T(std::forward<U>(value));
    head_ = at;
    ++size_;
  }
  void pop_front() noexcept {
    T& gone = slots_[head_];
    head_ = (head_ + 1) & (room_ - 1);
    --size_;
    if constexpr (!std::is_trivially_destructible_v<T>) destroy(gone);
  }
  /// Grows now if the next push_back would; true: it grew, and destructors of elements have run.
  bool make_room() {
    if (size_ < limit_) return false;
    circular_buffer made;
    made.make_larger_than(*this);
    made.move_all_from(*this);
    swap(made);
    return true;
  }
  /// Removes and returns the first element.
  T take_front() noexcept(std::is_nothrow_move_constructible_v<T>) {
    T taken(std::move(front()));
    pop_front();
    return taken;
  }
  void clear() noexcept {
    circular_buffer gone(std::move(*this));
    while (gone.size_ > 0) gone.pop_front();
  }

 private:
  /// The outermost running pop on an array of slots. If the circular_buffer has left that array
  /// meanwhile (`of` is null), the pop frees it.
  struct leaving {
    circular_buffer* of;
    T* slots;
    std::size_t room;
    ~leaving() {
      if (of == nullptr) {
        free_slots(slots, room);
      } else {
        of->leaving_ = nullptr;
        of->limit_ = of->room_;
      }
    }
  };

  void destroy(T& gone) noexcept {
    --limit_;
    if (leaving_ != nullptr) return gone.~T();  // inside the destructor of another element
    leaving mine{this, slots_, room_};
    leaving_ = &mine;
    gone.~T();
  }
  void swap(circular_buffer& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(room_, other.room_);
    std::swap(limit_, other.limit_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
    std::swap(leaving_, other.leaving_);
    if (leaving_ != nullptr) leaving_->of = this;
    if (other.leaving_ != nullptr) other.leaving_->of = &other;
  }
  static T* make_slots(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignof(T))));
  }
  static void free_slots(T* slots, std::size_t count) noexcept {
    if (slots != nullptr) ::operator delete(slots, count * sizeof(T), std::align_val_t(alignof(T)));
  }
  void leave_slots() noexcept {
    if (leaving_ != nullptr) {
      leaving_->of = nullptr;
    } else {
      free_slots(slots_, room_);
    }
  }
  void make_larger_than(const circular_buffer& other) {
    room_ = limit_ = other.room_ == 0 ? 4 : other.room_ * 2;
    slots_ = make_slots(room_);
  }
  void move_all_from(circular_buffer& other) {
    for (; size_ < other.size_; ++size_)
      ::new (static_cast<void*>(slots_ + head_ + size_)) T(std::move_if_noexcept(other[size_]));
  }
  /// Moves to a larger array, with a new element at `at`, which is 0 or size(). Everything that may
  /// throw comes before any change. The moved-from elements are destroyed last: their destructors
  /// see a consistent buffer.
  template <class U>
  void push_growing(std::size_t at, U&& value) {
    constexpr bool moves = std::is_nothrow_move_constructible_v<T>;
    circular_buffer made;
    made.make_larger_than(*this);
    made.head_ = at == 0 ? 1 : 0;
    void* const place = made.slots_ + at;
    if constexpr (moves) ::new (place) T(std::forward<U>(value));
    made.move_all_from(*this);
    if constexpr (!moves) ::new (place) T(std::forward<U>(value));
    made.head_ = 0;
    ++made.size_;
    swap(made);
  }

  T* slots_ = nullptr;
  std::size_t room_ = 0;   // 0 or a power of two
  std::size_t limit_ = 0;  // how many elements fit
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  leaving* leaving_ = nullptr;
};

}  // namespace weir::detail
