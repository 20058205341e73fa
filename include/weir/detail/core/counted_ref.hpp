// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

namespace weir::detail {

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
  explicit operator bool() const noexcept { return to_ != nullptr; }
  /// Releases ownership without dropping the reference.
  T* detach() noexcept { return std::exchange(to_, nullptr); }

 private:
  T* to_ = nullptr;
};

}  // namespace weir::detail
