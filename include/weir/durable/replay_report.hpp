// SPDX-License-Identifier: MIT
// What a replay of recorded runs against the present code has found.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace weir::durable {

/// The first difference between the journal of a run and what the code does.
struct replay_difference {
  std::string id;  ///< of the run
  std::string handler;
  int version = 1;
  std::string message;  ///< both sides, and the source line
};

struct replay_report {
  std::size_t runs = 0;  ///< how many were replayed
  std::vector<replay_difference> differences{};

  bool ok() const noexcept { return differences.empty(); }
};

/// A line for each difference, then one that counts.
std::ostream& operator<<(std::ostream& out, const replay_report& report);

}  // namespace weir::durable
