// SPDX-License-Identifier: MIT
#include <weir/cancel_reason.hpp>

#include <algorithm>
#include <array>
#include <atomic>

#include <weir/error.hpp>

namespace weir {

std::string_view to_string(cancel_kind kind) noexcept {
  static constexpr std::array<std::string_view, 16> names{
      "user",     "parent",    "sibling_failed", "race_lost", "hedge_lost",  "timeout",
      "deadline", "shutdown",  "signal",         "restart",   "scope_ended", "evicted",
      "remote",   "abandoned", "lease_lost",     "custom"};
  const auto index = static_cast<std::size_t>(kind);
  return index < names.size() ? names[index] : "unknown";
}

namespace detail {

struct reason_record {
  explicit reason_record(cancel_reason&& given) : reason(std::move(given)) {}
  std::atomic<std::uint32_t> refs{1};
  cancel_reason reason;
};

const cancel_reason* reason_ref::get() const noexcept {
  return record_ == nullptr ? nullptr : &record_->reason;
}

void retain(reason_record* record) noexcept {
  record->refs.fetch_add(1, std::memory_order_relaxed);
}

// Iterative: a chain can be as long as scopes are deep.
void release(reason_record* record) noexcept {
  while (record != nullptr && record->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    reason_record* outer = record->reason.outer_.detach();
    bury(std::move(record->reason.cause));
    delete record;
    record = outer;
  }
}

reason_ref make_reason(cancel_reason reason) {
  return reason_ref(new reason_record(std::move(reason)));
}

reason_ref make_reason(cancel_reason why, scope_id source, time_point when) {
  why.source = source;
  why.when = when;
  return make_reason(std::move(why));
}

reason_ref nested_reason(const reason_ref& outer, scope_id here, std::string_view name,
                         time_point when) {
  cancel_reason nested(cancel_kind::parent);
  nested.scope_name = name;
  nested.outer_ = outer;
  return make_reason(std::move(nested), here, when);
}

reason_ref remote_reason(const reason_ref& outer) {
  cancel_reason sent(cancel_kind::remote);
  sent.outer_ = outer;
  if (outer) sent.message = outer->message;
  return make_reason(std::move(sent));
}

reason_ref heard_at(const reason_ref& reason, time_point when) {
  cancel_reason heard(*reason);
  heard.when = when;
  return make_reason(std::move(heard));
}

}  // namespace detail

std::vector<cancel_reason> cancel_reason::chain() const {
  std::vector<cancel_reason> links;
  for (const cancel_reason* at = this; at != nullptr; at = at->outer_.get()) links.push_back(*at);
  std::reverse(links.begin(), links.end());
  return links;
}

}  // namespace weir
