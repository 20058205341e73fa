// SPDX-License-Identifier: MIT
// Reads single records from the disk, long after they were written.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weir/sim/disk.hpp>

#include "durable/journal_files.hpp"
#include "durable/payload_keys.hpp"
#include "durable/record.hpp"
#include "durable/snapshot.hpp"

namespace weir::detail {

/// Opens the sealed payload of a record. errc::wrong_key if its key is not there;
/// errc::journal_corrupt, naming file and offset, if it does not open with it.
void open_payload(const record_head& stored_head, std::string_view stored, payload_cipher* cipher,
                  const std::string& file, std::uint64_t offset, std::string& into);

/// Keeps a few segments open, and the snapshot.
class record_files {
 public:
  explicit record_files(const journal_files& files) : files_(files) {}

  /// Throws errc::journal_corrupt if the record is damaged or none begins here. `cipher` opens
  /// sealed payloads; null: there are none.
  record_head read(record_place place, std::uint32_t seed, payload_cipher* cipher,
                   std::string& payload);
  [[noreturn]] static void raise_no_record(const journal_files& files, record_place place);
  /// From now on the records of the segments that it replaces are read from it.
  void use(std::shared_ptr<const snapshot_index> snapshot);

 private:
  struct opened {
    std::uint64_t segment;
    std::unique_ptr<disk_file> file;
  };
  disk_file& open(std::uint64_t segment);
  /// A record and perhaps what follows it; valid until the next call.
  std::span<const std::byte> bytes_at(record_place place, std::uint32_t seed);
  std::span<const std::byte> bytes_in_snapshot(record_place place, std::uint32_t seed);
  /// Loads `n` bytes from a place on; fewer at the end of the file.
  std::size_t load_bytes(record_place place, std::size_t n);

  const journal_files& files_;
  std::vector<opened> open_;
  std::size_t oldest_ = 0;
  std::vector<std::byte> buffer_;
  std::string stored_;  // of a sealed payload
  std::shared_ptr<const snapshot_index> snapshot_;
  std::unique_ptr<disk_file> snapshot_file_;
  std::vector<std::byte> frame_;  // the last one that was read from the snapshot
  std::uint64_t frame_offset_ = 0;
  std::vector<snapshot_record> records_;  // in it
};

}  // namespace weir::detail
