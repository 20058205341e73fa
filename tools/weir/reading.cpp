// SPDX-License-Identifier: MIT
#include "reading.hpp"

#include <filesystem>
#include <system_error>

#include "commands.hpp"
#include "format.hpp"
#include "key_files.hpp"

namespace weir_tool {

using namespace weir::detail;

void indexing_visitor::restart() {
  index_.clear();
  records_ = 0;
  if (restarted_) restarted_();
}

void indexing_visitor::see(const record_head& head, std::string_view payload, std::uint64_t lsn,
                           record_place place) {
  constexpr std::uint64_t between_looks_at_the_clock = 4096;
  run_entry* const run = index_.see(head, payload);
  if (call_) call_({head, payload, lsn, place, run});
  if (++records_ % between_looks_at_the_clock == 0) console_.progress("reading", records_);
}

std::optional<weir::error> read_until_damage(journal_reader& from, indexing_visitor& into) {
  try {
    from.read(into);
    into.settle();
  } catch (const weir::error& e) {
    if (e.code() != weir::errc::journal_corrupt) throw;
    into.settle();
    return e;
  }
  return std::nullopt;
}

int finish(const std::optional<weir::error>& damage, console& to) {
  if (!damage) return exit_well;
  to.complain(std::string("what is above ends where the damage begins: ") + damage->what());
  return exit_found;
}

void require_journal(const request& r) {
  std::error_code ignored;
  if (!std::filesystem::exists(r.path, ignored))
    raise(weir::errc::invalid_argument, "there is no journal '" + r.path + "'");
  if (!std::filesystem::is_directory(r.path, ignored))
    raise(weir::errc::invalid_argument,
          "'" + r.path + "' is a file; give the directory of a journal");
}

journal_reader open_journal(const request& r) {
  require_journal(r);
  return journal_reader(weir::real_disk(), r.path, key_files(r.key_files).ring());
}

void raise_no_run(const request& r) {
  raise(weir::errc::invalid_argument, "journal '" + r.path + "' has no run '" + plain(r.run) +
                                          "'; `weir journal ls` lists its runs");
}

}  // namespace weir_tool
