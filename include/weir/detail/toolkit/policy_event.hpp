// SPDX-License-Identifier: MIT
// Events and counters of policies.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>

#include <weir/name.hpp>
#include <weir/outcome.hpp>

namespace weir::detail {

/// An event of a policy: its object is the name of the innermost enclosing `trace`, or else
/// `object`. Outside a loop it does nothing.
void emit_policy_event(std::string_view event, std::string_view object, std::uint64_t number = 0,
                       const std::exception_ptr& error = nullptr) noexcept;

/// `original` is suppressed by the error that `out` holds.
void suppress(outcome_base& out, std::exception_ptr original, std::string_view object);

/// A name shared by the copies of a policy.
class shared_name {
 public:
  shared_name() noexcept = default;
  explicit shared_name(const weir::name& given);
  std::string_view view() const noexcept { return text_; }

 private:
  std::string_view text_;
  std::shared_ptr<const kept_name> copy_;  // for names that are not literals
};

}  // namespace weir::detail
