// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
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

namespace detail {

struct reason_record;
void retain(reason_record* record) noexcept;
void release(reason_record* record) noexcept;

/// A counted reference to a reason. Records are immutable once shared; the count is atomic because
/// a copy of a reason may be handed to a cancel_source on another thread.
class reason_ref {
 public:
  reason_ref() noexcept = default;
  explicit reason_ref(reason_record* adopted) noexcept : record_(adopted) {}
  reason_ref(const reason_ref& other) noexcept : record_(other.record_) {
    if (record_ != nullptr) retain(record_);
  }
  reason_ref(reason_ref&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  reason_ref& operator=(reason_ref other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~reason_ref() {
    if (record_ != nullptr) release(record_);
  }

  explicit operator bool() const noexcept { return record_ != nullptr; }
  const cancel_reason* get() const noexcept;
  const cancel_reason& operator*() const noexcept { return *get(); }
  const cancel_reason* operator->() const noexcept { return get(); }
  /// Releases ownership without dropping the reference (used to destroy long chains without
  /// recursion).
  reason_record* detach() noexcept { return std::exchange(record_, nullptr); }

 private:
  reason_record* record_ = nullptr;
};

reason_ref make_reason(cancel_reason reason);
/// The reason that a nested scope sees: kind `parent`, with `outer` as the next link of the chain.
reason_ref nested_reason(const reason_ref& outer, scope_id here, std::string_view name,
                         time_point when);

/// The reason sent to the other side of a remote call: kind `remote`, with the caller's reason (if
/// it has one) as the next link. The receiving loop sets the time, see `heard_at`.
reason_ref remote_reason(const reason_ref& outer);
/// The same reason with the time of the receiving loop, whose clock may differ.
reason_ref heard_at(const reason_ref& reason, time_point when);

}  // namespace detail

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
