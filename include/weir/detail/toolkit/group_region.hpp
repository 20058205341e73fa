// SPDX-License-Identifier: MIT
// Part of <weir/group.hpp>, which includes it after the declarations it needs.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include <weir/detail/core/op.hpp>
#include <weir/name.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

/// The scope behind a group: a failing child cancels only the other children.
struct group_region final : guided_scope {
  group_region(group_setup&& setup, region_kind kind);
  void child_failed(fiber& f) override;
  using context::require_home;

  group face{*this};
  std::exception_ptr first;  // the error that wait() rethrows
  std::vector<std::exception_ptr> collected;
  std::int64_t collect;
  std::uint64_t dropped = 0;
  bool waiting = false;  // accepts no more jobs
  bool waited = false;   // wait() was begun
};

/// The body's error is thrown; an unobserved job error is suppressed.
void body_ended(group_region& g, outcome_base& out);

/// Waits until a group has no job left.
class group_wait : public join_wait {
 public:
  using args = group_region*;
  using result = void;

  explicit group_wait(args&& g) noexcept : join_wait({g, use::idle}), group_(g) {}
  bool try_now() noexcept;
  bool poll() override { return try_now(); }
  void describe(dump_line& line) const override;
  bool failed() const noexcept { return refused_ || group_->first != nullptr; }
  void take();

 private:
  group_region* group_;
  bool begun_ = false;    // this is the group's one wait
  bool refused_ = false;  // another wait came first
};

template <class F>
concept group_body = requires(F& f, group& g) { f(g); };

}  // namespace detail
}  // namespace weir
