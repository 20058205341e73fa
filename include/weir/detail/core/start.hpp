// SPDX-License-Identifier: MIT
// Part of <weir/start.hpp>, which scope.hpp includes after the declarations it needs.
#pragma once

#include <optional>
#include <utility>

#include <weir/future.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

/// Waits until a child reports that it has started, or ends. When cancelled, it cancels the child
/// and waits for its end.
class start_wait : public future_wait {
 public:
  using result = void;
  explicit start_wait(core_ref&& core) : future_wait(std::move(core)) {}
  void link() override { arm(); }
  cancel_result withdraw() noexcept override;
  bool pausable() const noexcept override { return false; }
  void describe(dump_line& line) const override;
  bool said() const noexcept { return said_; }
  void say() noexcept;

 private:
  bool said_ = false;
  bool leaving_ = false;
};

/// The reported value goes directly into the starter's wait: the child and its function may have
/// ended before the starter runs again.
template <class U>
class value_wait : public start_wait {
 public:
  using start_wait::start_wait;
  std::optional<stored_t<U>> value;
};

/// The type-independent part of `started<U>`.
class started_base {
 public:
  void bind(fiber& child) noexcept { child_ = &child; }

 protected:
  void claim();
  void no_longer_starting() noexcept;

 private:
  fiber* child_ = nullptr;
  bool said_ = false;
};

}  // namespace detail
}  // namespace weir
