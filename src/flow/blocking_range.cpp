// SPDX-License-Identifier: MIT
#include <weir/stream/blocking_range.hpp>

#include <limits>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/fatal.hpp"

namespace weir::detail {

void loopless_pull::describe(dump_line& line) const { line.add("blocking_range"); }

loopless_pull::inside::inside(loopless_pull& p) noexcept : outer_(current) {
  p.strand_.budget = std::numeric_limits<std::int16_t>::max();
  p.strand_.nesting = 0;
  current = &p.strand_;
}

loopless_pull::inside::~inside() { current = outer_; }

void loopless_pull::raise_pending(bool quiet) {
  if (!quiet) fatal("blocking_range: the stream has started what must be awaited");
  raise(errc::would_deadlock,
        "blocking_range: the stream would have to wait, and nothing could wake it outside of a "
        "loop; pull it inside weir::run");
}

}  // namespace weir::detail
