// SPDX-License-Identifier: MIT
#include "commands.hpp"
#include "run_history.hpp"

namespace weir_tool {

int export_run(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  history of(r.run);
  const auto damage = of.read(from, index, to);
  if (damage) throw weir::error(*damage);
  if (of.number() == 0) raise_no_run(r);
  to.complain("export is not available in this build");
  return exit_wrong;
}

}  // namespace weir_tool
