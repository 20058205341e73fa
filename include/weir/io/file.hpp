// SPDX-License-Identifier: MIT
// Files, on the blocking pool: a call runs on a thread of the pool while the loop goes on. In a
// simulation files are real, and each call runs on the simulation's thread as a step of its own.
//
// Paths are copied. What the system refuses is a weir::error with the system's code that names the
// path. A path with a NUL character: errc::invalid_argument. Directories are refused with
// std::errc::is_a_directory; pipes and sockets, which can block a thread without end, with
// errc::invalid_argument. Cancels: a call that still waits for a thread is removed; a running call
// is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <weir/blocking.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/detail/io/file_core.hpp>
#include <weir/detail/io/file_stage.hpp>
#include <weir/task.hpp>

namespace weir::io {

/// How a file is opened.
enum class mode : std::uint8_t {
  read,    ///< to read; it exists
  write,   ///< to write; created, or truncated
  append,  ///< to append; created if it does not exist
  update,  ///< to read and write; created if it does not exist
  create,  ///< to read and write; created, and must not exist (std::errc::file_exists)
};

/// An open file. Its calls may run at the same time, in any order.
///
/// After `close()`, and if it was moved from, every call is errc::closed. A call that the mode does
/// not allow is std::errc::bad_file_descriptor. Destroying it closes it, after running calls.
/// Threads: home loop only. Costs: a call allocates nothing once the caches are warm.
class file {
 public:
  file() noexcept = default;
  file(file&&) noexcept = default;
  file& operator=(file&&) noexcept = default;
  ~file() = default;

  /// A new file gets mode 0666 without the bits of the umask.
  static task<file> open(std::string_view path, mode how);

  /// Reads from an offset. Short only at the end of the file; 0 beyond it.
  [[nodiscard]] auto read_at(std::uint64_t offset, std::span<std::byte> into) {
    return blocking([f = use("read_at"), offset, into] { return read(*f, offset, into); });
  }
  /// Writes everything at an offset. In mode::append: errc::invalid_argument.
  [[nodiscard]] auto write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    return blocking([f = use("write_at"), offset, bytes] { write(*f, offset, bytes); });
  }
  [[nodiscard]] auto write_at(std::uint64_t offset, std::string_view text) {
    return write_at(offset, std::as_bytes(std::span(text)));
  }
  /// Writes everything at the end, wherever that is at the time of the call; in any mode that
  /// writes. One system call appends its bytes in one piece.
  [[nodiscard]] auto append(std::span<const std::byte> bytes) {
    return blocking([f = use("append"), bytes] { append_to(*f, bytes); });
  }
  [[nodiscard]] auto append(std::string_view text) {
    return append(std::as_bytes(std::span(text)));
  }
  /// Data and metadata are on the disk when it returns.
  [[nodiscard]] auto sync() {
    return blocking([f = use("sync")] { sync_data(*f); });
  }
  [[nodiscard]] auto size() {
    return blocking([f = use("size")] { return size_of(*f); });
  }
  /// Refuses further calls, waits for running ones, closes. Reports what the system found only now;
  /// the file is closed in any case. Closing it again has no effect.
  [[nodiscard]] task<> close();

  // Below: for the library.
  explicit file(detail::file_ref core) noexcept : core_(std::move(core)) {}

 private:
  /// Throws errc::closed or errc::wrong_loop.
  const detail::file_ref& use(const char* what) const;
  static std::size_t read(detail::file_core& f, std::uint64_t offset, std::span<std::byte> into);
  static void write(detail::file_core& f, std::uint64_t offset, std::span<const std::byte> bytes);
  static void append_to(detail::file_core& f, std::span<const std::byte> bytes);
  static void sync_data(detail::file_core& f);
  static std::uint64_t size_of(detail::file_core& f);

  detail::file_ref core_;
};

inline constexpr std::size_t max_file_size = std::size_t{64} << 20;

/// The whole file. Larger than `max`: errc::too_large.
task<std::string> read_file(std::string_view path, std::size_t max = max_file_size);

/// Replaces the file, or creates it: readers find the old content or the new, also after a power
/// failure. The bytes are copied before it starts.
///
/// They go to a temporary file in the same folder, which is synced and renamed; then the folder is
/// synced. An existing file keeps its mode and, if the system allows it, its owner. A symbolic link
/// stays a link; its target is replaced. No temporary file is left behind, whether it ends well,
/// fails or is cancelled; one that a process left when it was killed is named `.weir-*.tmp`. What
/// is not a regular file: errc::invalid_argument.
task<> write_file(std::string_view path, std::string_view text);
task<> write_file(std::string_view path, std::span<const std::byte> bytes);

/// The lines of a file as a stream, without their end ("\n", or "\r\n"); the last may lack it. The
/// file is opened at the first pull. Longer than `max` bytes: errc::too_long. A cancelled pull
/// loses nothing.
[[nodiscard]] inline auto lines(std::string_view path, std::size_t max = max_file_size) {
  return detail::make_pipeline(detail::file_lines_stage(std::string(path), max));
}

/// The content of a file as a stream of pieces of `n` bytes; the last may be shorter. 0:
/// errc::invalid_argument.
[[nodiscard]] inline auto chunks(std::string_view path, std::size_t n) {
  return detail::make_pipeline(detail::file_chunks_stage(std::string(path), n));
}

}  // namespace weir::io
