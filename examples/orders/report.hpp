// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "shop.hpp"

namespace shop {

/// What the ledger and the journal say together, after everything has ended.
struct report {
  int orders = 0;
  std::map<std::string, int> endings;      ///< shipped, refused, failed, cancelled
  std::map<std::string, int> failures;     ///< by message
  std::map<std::string, int> reasons;      ///< of cancelled orders
  std::map<std::string, int> effects;      ///< reserve, capture, ...: really done
  std::map<std::string, int> left;         ///< on the shelves, by item
  std::map<int, int> versions;             ///< orders by version of checkout
  int repeated = 0;                        ///< effects that were asked for again after the crash
  int restarts = 0;                        ///< of workers, by their supervisor
  int sent_again = 0;                      ///< requests without an answer, by those who sent them
  std::vector<std::int64_t> latencies_ms;  ///< sorted
  std::vector<std::string> problems;       ///< why "exactly once" does not hold; empty: it does
};

/// Reads the ledger, and the journal by opening it once more. `left`: what the shop said of its
/// shelves.
report examine(const settings& s, const std::map<std::string, int>& left);

/// `times`: with what depends on the speed of the machine.
void print(const report& r, const settings& s, bool times);

/// What the last process has counted about itself goes to a file, and from there to the summary.
void save_counts(const settings& s);

}  // namespace shop
