// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weir::detail {

/// A base with an intrusive count of owners, for objects that several threads own; the last owner
/// deletes it. Every release happens before the destructor. `T` is final, or its destructor is
/// virtual; a destructor that is not public makes `counted<T>` a friend.
template <class T>
class counted {
 public:
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  void retain() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); }
  /// The only owner need not count down: no other thread can retain it.
  void release() noexcept {
    if (has_one_owner() || owners_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete static_cast<T*>(this);
  }
  bool has_one_owner() const noexcept { return owners_.load(std::memory_order_acquire) == 1; }

 protected:
  explicit counted(std::uint32_t owners = 1) noexcept : owners_(owners) {}
  ~counted() = default;

 private:
  std::atomic<std::uint32_t> owners_;
};

/// A counted reference to something with `retain()` and `release()`.
template <class T>
class counted_ref {
 public:
  counted_ref() noexcept = default;
  explicit counted_ref(T* adopted) noexcept : to_(adopted) {}
  static counted_ref share(T* to) noexcept {
    if (to != nullptr) to->retain();
    return counted_ref(to);
  }
  counted_ref(const counted_ref& other) noexcept : to_(other.to_) {
    if (to_ != nullptr) to_->retain();
  }
  counted_ref(counted_ref&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
  counted_ref& operator=(counted_ref other) noexcept {
    std::swap(to_, other.to_);
    return *this;
  }
  ~counted_ref() {
    if (to_ != nullptr) to_->release();
  }
  T* get() const noexcept { return to_; }
  T* operator->() const noexcept { return to_; }
  T& operator*() const noexcept { return *to_; }
  explicit operator bool() const noexcept { return to_ != nullptr; }
  /// Releases ownership without dropping the reference.
  T* detach() noexcept { return std::exchange(to_, nullptr); }

 private:
  T* to_ = nullptr;
};

}  // namespace weir::detail
