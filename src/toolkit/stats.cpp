// SPDX-License-Identifier: MIT
#include <weir/stats.hpp>

#include "core/counters.hpp"

namespace weir {

std::uint64_t process_stats::counter(std::string_view object, std::string_view what) const {
  return detail::counters::read(object, what);
}

std::uint64_t process_stats::cancels(cancel_kind kind) const noexcept {
  return detail::counters::read_cancels(kind);
}

std::uint64_t process_stats::uncounted() const { return detail::counters::read_uncounted(); }

}  // namespace weir
