// SPDX-License-Identifier: MIT
// Compacts a journal that no engine has open.
#pragma once

#include <cstddef>
#include <cstdint>

#include <weir/durable/engine.hpp>

namespace weir::detail {

struct compact_report {
  std::uint64_t bytes_before = 0;  // of all files
  std::uint64_t bytes_after = 0;
};

/// Blocks. Forgets the ended runs whose retention is over (`options.retention`), removes everything
/// that is not needed any more, and leaves all other runs as they are; none of them is continued.
/// New segments have the size that the journal has had, whatever `options.segment_bytes` is.
/// Errors: errc::invalid_argument if there is no journal; errc::journal_locked if it is in use; and
/// those of opening it. REQUIRES: not called inside of a loop.
compact_report compact_journal(durable::engine_options options);

}  // namespace weir::detail
