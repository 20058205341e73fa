// SPDX-License-Identifier: MIT
#include <string_view>
#include <vector>

#include <weir/durable/json.hpp>

#include "commands.hpp"
#include "durable/compact_journal.hpp"
#include "format.hpp"
#include "key_files.hpp"

namespace weir_tool {

int compact_journal(const request& r, console& to) {
  const key_files keys(r.key_files);
  const std::vector<std::string_view> old_keys = keys.old();
  weir::durable::engine_options options;
  options.path = r.path;
  options.retention = r.retention;
  options.encryption_key = keys.present();
  options.old_keys = old_keys;
  require_journal(r);
  const weir::detail::compact_report done = weir::detail::compact_journal(options);
  if (!r.json) {
    to.line(plain(r.path) + ": " + size_text(done.bytes_before) + " before, " +
            size_text(done.bytes_after) + " after");
    return exit_well;
  }
  weir::json_writer out;
  out.begin_object();
  out.key("journal");
  out.string(r.path);
  out.key("bytes_before");
  out.number(done.bytes_before);
  out.key("bytes_after");
  out.number(done.bytes_after);
  out.end_object();
  to.line(out.take());
  return exit_well;
}

}  // namespace weir_tool
