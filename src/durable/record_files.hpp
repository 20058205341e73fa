// SPDX-License-Identifier: MIT
// Reads single records from the disk, long after they were written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <weir/sim/disk.hpp>

#include "durable/journal_files.hpp"
#include "durable/payload_keys.hpp"
#include "durable/record.hpp"

namespace weir::detail {

/// Opens the payload of a record, if it is sealed. errc::journal_corrupt, naming file and offset,
/// if it does not open.
void open_payload(const record_head& stored_head, std::string_view stored, payload_cipher* cipher,
                  const std::string& file, std::uint64_t offset, std::string& into);

/// Keeps a few segments open.
class record_files {
 public:
  explicit record_files(const journal_files& files) : files_(files) {}

  /// Throws errc::journal_corrupt if the record is damaged or none begins here. `cipher` opens
  /// sealed payloads; null: there are none.
  record_head read(record_place place, std::uint32_t seed, payload_cipher* cipher,
                   std::string& payload);
  [[noreturn]] static void raise_no_record(const journal_files& files, record_place place);

 private:
  struct opened {
    std::uint64_t segment;
    std::unique_ptr<disk_file> file;
  };
  disk_file& open(std::uint64_t segment);
  /// Loads `n` bytes from a place on; fewer at the end of the file.
  std::size_t load_bytes(record_place place, std::size_t n);

  const journal_files& files_;
  std::vector<opened> open_;
  std::size_t oldest_ = 0;
  std::vector<std::byte> buffer_;
  std::string stored_;  // of a sealed payload
};

}  // namespace weir::detail
