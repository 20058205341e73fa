// SPDX-License-Identifier: MIT
// Part of <weir/cancel_reason.hpp>, which includes it after the declarations it needs.
#pragma once

#include <string_view>
#include <utility>

#include <weir/duration.hpp>

namespace weir {

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
}  // namespace weir
