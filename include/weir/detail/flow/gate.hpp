// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include <weir/detail/core/home.hpp>
#include <weir/detail/core/wait_list.hpp>
#include <weir/name.hpp>

namespace weir::detail {

class gate_wait;

/// Fibers wait until it is open: the common part of `event` and `latch`.
class gate {
 public:
  gate(const char* kind, bool open, const weir::name& name) : kind_(kind), name_(name) {
    open_ = open;
  }
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;
  ~gate() { waiters_.require_empty(self()); }

  void check() {
    if (!home_.is_here()) [[unlikely]]
      settle_home();
  }
  bool is_open() const noexcept { return open_; }
  /// Releases all waiters in order of arrival.
  void open() noexcept;
  void shut() noexcept { open_ = false; }
  object_name self() const noexcept { return {kind_, name_.view()}; }

 private:
  friend class gate_wait;
  void settle_home();
  const char* kind_;
  wait_list waiters_;
  home home_;
  bool open_;
  kept_name name_;
};

class gate_wait : public simple_wait<gate_wait, linked_wait> {
 public:
  struct args {
    gate* of;
  };
  using result = void;

  // Constructed where it is awaited, which may differ from where `wait` was called.
  explicit gate_wait(args&& a) : gate_(a.of) { gate_->check(); }
  bool try_now() const noexcept { return gate_->is_open(); }
  void arm() noexcept {
    if (gate_->is_open()) return complete();  // by another arm of the same composite wait
    gate_->waiters_.push_back(*this);
  }
  cancel_result withdraw() noexcept override {
    gate_->waiters_.remove(*this);
    return cancel_result::done;
  }
  void describe(dump_line& line) const override;
  void take() const noexcept {}

 private:
  friend class gate;
  gate* gate_;
};

}  // namespace weir::detail
