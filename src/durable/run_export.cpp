// SPDX-License-Identifier: MIT
#include "durable/run_export.hpp"

#include <weir/error.hpp>

#include "durable/awakeable_id.hpp"
#include "durable/crc32c.hpp"
#include "durable/little_endian.hpp"
#include "durable/run_record.hpp"

namespace weir::detail {

namespace {

constexpr std::string_view export_magic = "WEIRRUN1";
constexpr std::uint32_t export_version = 1;
constexpr std::size_t export_header_bytes = 24;
constexpr std::size_t export_record_bytes = 28;
/// The type of a record that is not in the journal: its payload is the id of an awakeable.
constexpr std::uint16_t export_awakeable = 0;

template <class T>
void put(std::string& out, T n) {
  n = little_endian(n);
  out.append(reinterpret_cast<const char*>(&n), sizeof n);
}

template <class T>
T get(std::string_view bytes, std::size_t at) {
  return load<T>(std::as_bytes(std::span(bytes)).data() + at);
}

std::uint32_t checksum(std::string_view bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

void add_record(std::string& out, const record_head& head, std::string_view payload) {
  std::string body;
  body.reserve(export_record_bytes + payload.size());
  put(body, static_cast<std::uint32_t>(payload.size()));
  put(body, head.type);
  put(body, head.flags);
  put(body, head.run);
  put(body, head.fiber);
  put(body, head.index);
  body.append(payload);
  put(out, checksum(body));
  out.append(body);
}

bool makes_awakeable(const record_head& head) {
  return head.type == static_cast<std::uint16_t>(record_type::command) &&
         kind_of_command(head.flags) == command_kind::awakeable;
}

[[noreturn]] void refuse_export(std::string_view file, std::size_t offset, std::string_view why) {
  std::string text("'");
  text.append(file).append("' at offset ").append(std::to_string(offset)).append(": ").append(why);
  raise(errc::bad_data, text.append("; write it again with weir journal export"));
}

}  // namespace

std::string write_export(std::span<const exported_record> records, const journal_secret& secret) {
  std::string body;
  std::uint32_t count = 0;
  for (const exported_record& r : records) {
    add_record(body, r.head, r.payload);
    ++count;
    if (!makes_awakeable(r.head)) continue;
    const std::uint64_t made_by = command_record::read(r.payload).number;
    record_head head = r.head;
    head.type = export_awakeable;
    head.flags = 0;
    const std::uint64_t key = command_key(head.fiber, head.index);
    add_record(body, head, awakeable_id({made_by == 0 ? head.run : made_by, key}, secret));
    ++count;
  }
  std::string out(export_magic);
  put(out, export_version);
  put(out, count);
  put(out, std::uint32_t{0});
  put(out, checksum(out));
  return out.append(body);
}

exported_run read_export(std::string_view bytes, std::string_view file) {
  if (bytes.size() < export_header_bytes || !bytes.starts_with(export_magic))
    refuse_export(file, 0, "this is not the export of a run");
  if (get<std::uint32_t>(bytes, 20) != checksum(bytes.substr(0, 20)))
    refuse_export(file, 0, "the header is damaged");
  const auto version = get<std::uint32_t>(bytes, 8);
  if (version != export_version)
    refuse_export(file, 8,
                  "format version " + std::to_string(version) + ", this weir reads version " +
                      std::to_string(export_version));
  exported_run run;
  std::size_t at = export_header_bytes;
  for (auto left = get<std::uint32_t>(bytes, 12); left > 0; --left) {
    if (bytes.size() - at < export_record_bytes) refuse_export(file, at, "the file ends here");
    exported_record r;
    const auto size = get<std::uint32_t>(bytes, at + 4);
    if (bytes.size() - at - export_record_bytes < size)
      refuse_export(file, at, "the record does not fit into the file");
    const std::size_t whole = export_record_bytes + size;
    if (get<std::uint32_t>(bytes, at) != checksum(bytes.substr(at + 4, whole - 4)))
      refuse_export(file, at, "the record is damaged");
    r.head.type = get<std::uint16_t>(bytes, at + 8);
    r.head.flags = get<std::uint16_t>(bytes, at + 10);
    r.head.run = get<std::uint64_t>(bytes, at + 12);
    r.head.fiber = get<std::uint32_t>(bytes, at + 20);
    r.head.index = get<std::uint32_t>(bytes, at + 24);
    r.payload = bytes.substr(at + export_record_bytes, size);
    at += whole;
    if (r.head.type == export_awakeable) {
      run.awakeables[command_key(r.head.fiber, r.head.index)] = std::move(r.payload);
    } else if (r.head.type == static_cast<std::uint16_t>(record_type::site)) {
      run.sites.push_back(std::move(r.payload));
    } else {
      run.records.push_back(std::move(r));
    }
  }
  if (at != bytes.size()) refuse_export(file, at, "the file does not end here");
  if (run.records.empty() || !starts_run(run.records.front().head.type))
    refuse_export(file, export_header_bytes, "the first record does not start a run");
  return run;
}

}  // namespace weir::detail
