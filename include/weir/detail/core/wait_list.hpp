// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait.hpp>

namespace weir::detail {

/// A wait that is in a list of its source while it is armed.
class linked_wait : public local_wait {
 public:
  static constexpr bool home_bound = true;  // as the list is
  linked_wait() noexcept = default;

 protected:
  ~linked_wait() = default;

 private:
  friend class wait_list;
  linked_wait* previous_;  // only while it is in a list
  linked_wait* next_;
};

/// A FIFO list of waits. Intrusive: entering and leaving are O(1).
class wait_list {
 public:
  wait_list() noexcept = default;
  wait_list(const wait_list&) = delete;
  wait_list& operator=(const wait_list&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  linked_wait* first() const noexcept { return first_; }
  static linked_wait* after(const linked_wait& w) noexcept { return w.next_; }

  void push_back(linked_wait& w) noexcept {
    w.previous_ = last_;
    w.next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = &w;
    last_ = &w;
  }
  /// Removes the first. REQUIRES: !empty().
  void pop_front() noexcept {
    first_ = first_->next_;
    (first_ == nullptr ? last_ : first_->previous_) = nullptr;
  }
  void remove(linked_wait& w) noexcept {
    (w.previous_ == nullptr ? first_ : w.previous_->next_) = w.next_;
    (w.next_ == nullptr ? last_ : w.next_->previous_) = w.previous_;
  }

  /// Aborts with the names of the waiting fibers, if any: `whose` is being destroyed.
  void require_empty(const object_name& whose) const {
    if (first_ != nullptr) [[unlikely]]
      destroyed_too_early(whose);
  }

 private:
  [[noreturn]] void destroyed_too_early(const object_name& whose) const;
  linked_wait* first_ = nullptr;
  linked_wait* last_ = nullptr;
};

}  // namespace weir::detail
