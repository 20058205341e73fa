// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <weir/duration.hpp>

namespace weir {

/// Names a scope in reasons, events and dumps. Unique within its loop; 0 means "none".
using scope_id = std::uint64_t;

enum class cancel_kind : std::uint8_t {
  user,
  parent,
  sibling_failed,
  race_lost,
  hedge_lost,
  timeout,
  deadline,
  shutdown,
  signal,
  restart,
  scope_ended,
  evicted,
  remote,
  abandoned,
  lease_lost,
  custom,
};

/// The name of a kind as it appears in dumps and events, e.g. "sibling_failed".
std::string_view to_string(cancel_kind kind) noexcept;

class cancel_reason;

}  // namespace weir

#include <weir/detail/core/cancel_reason.hpp>

namespace weir {

/// Why something was cancelled, and through which scopes the request came.
///
/// A plain value: copy it, keep it, compare its parts. `message` is the text of the request;
/// `source` the scope that was cancelled first, `when` the loop's time, `cause` the error behind a
/// `sibling_failed`.
class cancel_reason {
 public:
  cancel_reason() = default;
  cancel_reason(cancel_kind why, std::string_view text = {}) : kind(why), message(text) {}

  cancel_kind kind = cancel_kind::user;
  std::string message;
  scope_id source = 0;
  time_point when{};
  std::exception_ptr cause;
  std::string scope_name;  ///< of `source`; empty if it has none

  /// Every link from the origin (front) to this one (back).
  std::vector<cancel_reason> chain() const;

 private:
  friend detail::reason_ref detail::nested_reason(const detail::reason_ref&, scope_id,
                                                  std::string_view, time_point);
  friend detail::reason_ref detail::remote_reason(const detail::reason_ref&);
  friend void detail::release(detail::reason_record*) noexcept;
  detail::reason_ref outer_;
};

}  // namespace weir
