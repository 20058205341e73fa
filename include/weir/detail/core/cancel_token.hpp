// SPDX-License-Identifier: MIT
// The machinery of <weir/cancel_token.hpp>.
#pragma once

#include <memory>
#include <vector>

#include <weir/cancel_reason.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/policy/settle.hpp>

namespace weir {

class cancel_token;

namespace detail {

class cancel_state;
struct token_registration;
using state_list = std::vector<std::shared_ptr<cancel_state>>;

/// The region of with_token: cancelled when one of the states fires.
struct token_region final : plain_region {
  using setup = state_list;
  explicit token_region(state_list states);
  ~token_region();
  bool may_start(outcome_base& out);
  void fire(const cancel_reason& reason) noexcept;
  bool can_still_fire() const noexcept;

  token_region* next_on_loop = nullptr;
  token_region** at_on_loop = nullptr;

 private:
  state_list states_;
  std::vector<std::shared_ptr<token_registration>> registrations_;
};

}  // namespace detail
}  // namespace weir
