// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <weir/detail/core/wait_list.hpp>

namespace weir::detail {

/// A wait in the line for the next item of a queue or channel: the item, or an error. `Derived`
/// returns an item that it received and did not deliver.
template <class Derived, class T>
class item_wait : public simple_wait<Derived, linked_wait> {
 public:
  using result = std::optional<T>;

  bool in_line() const noexcept override { return true; }
  bool failed() const noexcept { return error_ != nullptr; }
  void poll_failed(std::exception_ptr e) noexcept { error_ = std::move(e); }
  std::optional<T> take() {
    if (error_ != nullptr) [[unlikely]]
      std::rethrow_exception(std::exchange(error_, nullptr));
    // Not a copy of the optional: right after a value and a flag were stored, no processor forwards
    // them to one load of both. One variable is returned, so that nothing is moved again and lost.
    std::optional<T> taken;
    if (value_) {
      taken.emplace(std::move(*value_));
      value_.reset();
    }
    return taken;
  }

 protected:
  item_wait() noexcept = default;
  ~item_wait() = default;
  std::optional<T> value_;
  std::exception_ptr error_;  // of the source, or the value could not be moved
};

}  // namespace weir::detail
