// SPDX-License-Identifier: MIT
// Writes the history of a run to a file that durable::replay takes.
#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <weir/durable/json.hpp>

#include "commands.hpp"
#include "durable/run_export.hpp"
#include "format.hpp"
#include "run_history.hpp"

namespace weir_tool {

using namespace weir::detail;

namespace {

/// The source lines that the commands of a run refer to, as records.
std::vector<exported_record> sites_of(const history& of, const site_table& sites) {
  std::vector<exported_record> found;
  std::set<std::uint32_t> known;
  for (const kept_record& k : of.records()) {
    if (k.head.type != static_cast<std::uint16_t>(record_type::command)) continue;
    const std::uint32_t number = command_record::read(k.payload).site;
    const site_record site = sites.record_of(number);
    if (site.number == 0 || !known.insert(number).second) continue;
    payload_writer payload;
    site.write(payload);
    record_head head;
    head.type = static_cast<std::uint16_t>(record_type::site);
    found.push_back({head, std::string(payload.view().bytes)});
  }
  return found;
}

/// Under another name first, so that a failure leaves no half of it.
void write_file(const std::string& name, std::string_view bytes) {
  weir::disk& disk = weir::real_disk();
  const std::string unfinished_name = name + std::string(unfinished);
  const auto file = disk.open(unfinished_name, weir::open_mode::create);
  try {
    file->truncate(0);
    weir::write_all(*file, std::as_bytes(std::span(bytes)), 0);
    file->sync();
    disk.rename(unfinished_name, name);
  } catch (...) {
    (void)try_to_unlink(disk, unfinished_name);
    throw;
  }
}

}  // namespace

int export_run(const request& r, console& to) {
  auto from = open_journal(r);
  run_index index;
  history of(r.run);
  const auto damage = of.read(from, index, to);
  if (damage) throw weir::error(*damage);
  if (of.number() == 0) raise_no_run(r);
  if (from.view().key_id != 0 && r.key_files.empty())
    raise(weir::errc::wrong_key,
          "journal '" + r.path + "' is encrypted, an export is not; give its key by --key-file");
  std::vector<exported_record> records;
  for (const kept_record& k : of.records()) records.push_back({k.head, k.payload});
  const std::uint64_t count = records.size();
  const std::vector<exported_record> sites = sites_of(of, index.sites());
  records.insert(records.begin() + 1, sites.begin(), sites.end());
  const std::string bytes = write_export(records, from.secret());
  write_file(r.file, bytes);
  if (!r.json) {
    to.line(plain(r.file) + ": run " + plain(index.find(of.number())->id) + ", " +
            counted(count, "record") + ", " + size_text(bytes.size()));
    return exit_well;
  }
  weir::json_writer out;
  out.begin_object();
  out.key("file");
  out.string(r.file);
  out.key("run");
  out.string(index.find(of.number())->id);
  out.key("records");
  out.number(count);
  out.key("bytes");
  out.number(bytes.size());
  out.end_object();
  to.line(out.take());
  return exit_well;
}

}  // namespace weir_tool
