// SPDX-License-Identifier: MIT
#include <weir/policy/bulkhead.hpp>

#include <vector>

#include <weir/detail/toolkit/policy_event.hpp>

#include "toolkit/option.hpp"

namespace weir::detail {

namespace {

struct owned_governor final : counting_governor {
  using counting_governor::counting_governor;
};

}  // namespace

std::shared_ptr<counting_governor> own_governor(std::int64_t limit, const char* policy) {
  require_option(limit >= 1, policy, "a limit below 1 lets nothing run; give 1 or more");
  return std::make_shared<owned_governor>(limit, governor_options{.name = policy});
}

void emit_refused(const std::exception_ptr& error, std::string_view governor, const char* policy) {
  try {
    std::rethrow_exception(error);
  } catch (const weir::error& e) {
    if (e.code() == errc::governor_full || e.code() == errc::governor_closed)
      emit_policy_event("rejected", governor.empty() ? std::string_view(policy) : governor);
  } catch (...) {
    return;  // the operation failed; it was not refused
  }
}

std::exception_ptr release_permit(permit& held, const outcome_base& out) {
  try {
    held.release();
    return nullptr;
  } catch (...) {
    if (!out.is_error()) return std::current_exception();
    return std::make_exception_ptr(error_group({out.error(), std::current_exception()}));
  }
}

}  // namespace weir::detail
