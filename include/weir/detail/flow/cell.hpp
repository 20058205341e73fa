// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <weir/detail/core/frame.hpp>

namespace weir::detail {

/// An item that several subscribers share; counted without atomics, on one loop.
template <class T>
struct cell : frame_allocated {
  template <class U>
  explicit cell(U&& v) : value(std::forward<U>(v)) {}
  T value;
  std::uint32_t refs = 1;
};

template <class T>
class cell_ref {
 public:
  cell_ref() noexcept = default;
  explicit cell_ref(cell<T>* adopted) noexcept : cell_(adopted) {}
  cell_ref(const cell_ref& other) noexcept : cell_(other.cell_) {
    if (cell_ != nullptr) ++cell_->refs;
  }
  cell_ref(cell_ref&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  cell_ref& operator=(cell_ref other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~cell_ref() {
    if (cell_ != nullptr && --cell_->refs == 0) delete cell_;
  }
  const T& operator*() const noexcept { return cell_->value; }
  explicit operator bool() const noexcept { return cell_ != nullptr; }

 private:
  cell<T>* cell_ = nullptr;
};

/// An item that a next() has taken from a broadcast and not yet delivered.
template <class T>
struct taken_item {
  cell_ref<T> item;
  std::uint64_t missed = 0;  // items missed right before it
};

}  // namespace weir::detail
