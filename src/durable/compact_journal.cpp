// SPDX-License-Identifier: MIT
#include "durable/compact_journal.hpp"

#include <algorithm>
#include <string>

#include <weir/run.hpp>

#include "durable/engine_core.hpp"
#include "durable/journal_files.hpp"
#include "durable/manifest.hpp"
#include "durable/snapshot.hpp"

namespace weir::detail {

namespace {

std::uint64_t bytes_in(const journal_files& files, const std::string& directory) {
  std::uint64_t sum = 0;
  for (const std::string& name : files.disk->list(directory)) {
    if (directory == files.directory && name == blob_directory) continue;
    sum += files.disk->open(directory + "/" + name, open_mode::read)->size();
  }
  return sum;
}

std::uint64_t bytes_of(const journal_files& files) {
  const std::string blobs = files.path(blob_directory);
  return bytes_in(files, files.directory) +
         (files.disk->exists(blobs) ? bytes_in(files, blobs) : 0);
}

void require_journal(const journal_files& files) {
  if (files.disk->exists(files.directory)) {
    const std::vector<std::string> names = files.disk->list(files.directory);
    const auto is_part = [](const std::string& name) {
      return name == manifest_name || segment_number(name) || snapshot_number(name);
    };
    if (std::any_of(names.begin(), names.end(), is_part)) return;
  }
  raise(errc::invalid_argument,
        "'" + files.directory + "' is not a journal: it has no segments; give its directory");
}

task<> compact(durable::engine_options options) {
  auto body = [&](scope& s) -> task<> {
    const auto core = std::make_shared<engine_core>(engine_setup(options));
    const auto service = s.background(core->serve(), {.name = "durable engine"});
    co_await core->service_begun();
    core->open();
    co_await core->compact_all();
    core->ask_to_close();
    co_await service;
  };
  co_await with_scope(body);
}

}  // namespace

compact_report compact_journal(durable::engine_options options) {
  const journal_files files{options.disk != nullptr ? options.disk : &real_disk(),
                            std::string(options.path), true};
  require_journal(files);
  if (const auto known = read_manifest(files))
    options.segment_bytes = static_cast<std::int64_t>(known->segment_bytes);
  options.report_blocked = false;
  compact_report report;
  report.bytes_before = bytes_of(files);
  weir::run(compact(options));
  report.bytes_after = bytes_of(files);
  return report;
}

}  // namespace weir::detail
