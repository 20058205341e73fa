// SPDX-License-Identifier: MIT
#include "commands.hpp"

namespace weir_tool {

int compact_journal(const request& r, console& to) {
  (void)open_journal(r);
  to.complain("compact is not available in this build");
  return exit_wrong;
}

}  // namespace weir_tool
