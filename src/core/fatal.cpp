// SPDX-License-Identifier: MIT
#include "core/fatal.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/dump_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

void fatal(std::string_view what) noexcept {
  std::fprintf(stderr, "weir: fatal: %.*s\n", static_cast<int>(what.size()), what.data());
  // While a loop crashes, its tree is half destroyed.
  if (loop* here = crashing ? nullptr : loop::here()) std::fputs(dump_of(*here).c_str(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace weir::detail
