// SPDX-License-Identifier: MIT
// Shared by real and simulated disks: error texts, and loops over short transfers.
#include <cerrno>
#include <system_error>

#include <weir/sim/disk.hpp>

#include "sim/disk_error.hpp"

namespace weir {

namespace detail {

void raise_disk(int error, std::string_view call, std::string_view path, std::string_view where) {
  std::string text(call);
  text.append(" '").append(path).append("'").append(where);
  throw std::system_error(error, std::generic_category(), text);
}

std::string at_offset(std::uint64_t offset) { return " at " + std::to_string(offset); }
std::string to_size(std::uint64_t size) { return " to " + std::to_string(size); }

void raise_disk_locked(std::string_view path) {
  raise_disk(EAGAIN, "lock", path, ": it is held already, here or by another process");
}

}  // namespace detail

std::size_t read_up_to(disk_file& file, std::span<std::byte> into, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < into.size()) {
    const std::size_t n = file.pread(into.subspan(done), offset + done);
    if (n == 0) break;
    done += n;
  }
  return done;
}

void read_exactly(disk_file& file, std::span<std::byte> into, std::uint64_t offset) {
  const std::size_t done = read_up_to(file, into, offset);
  if (done == into.size()) return;
  detail::raise_disk(EIO, "pread", file.path(),
                     detail::at_offset(offset) + ": the file ends after " + std::to_string(done) +
                         " of " + std::to_string(into.size()) + " bytes");
}

void write_all(disk_file& file, std::span<const std::byte> from, std::uint64_t offset) {
  while (!from.empty()) {
    const std::size_t n = file.pwrite(from, offset);
    // A zero-byte write is a disk bug: fail instead of looping.
    if (n == 0) detail::raise_disk(EIO, "pwrite", file.path(), detail::at_offset(offset));
    from = from.subspan(n);
    offset += n;
  }
}

}  // namespace weir
