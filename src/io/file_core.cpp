// SPDX-License-Identifier: MIT
#include "io/file_core.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace weir::detail {

namespace {

constexpr std::uint64_t max_offset = std::numeric_limits<off_t>::max();

struct opening {
  int flags;
  const char* purpose;
};

opening opening_of(io::mode how) {
  switch (how) {
    case io::mode::read:
      return {O_RDONLY, "reading"};
    case io::mode::write:
      return {O_WRONLY | O_CREAT | O_TRUNC, "writing"};
    case io::mode::append:
      return {O_WRONLY | O_CREAT | O_APPEND, "appending"};
    case io::mode::update:
      return {O_RDWR | O_CREAT, "reading and writing"};
    case io::mode::create:
      return {O_RDWR | O_CREAT | O_EXCL, "creating it"};
  }
  raise(errc::invalid_argument,
        "file::open: mode " + std::to_string(static_cast<int>(how)) + " does not exist");
}

[[noreturn]] void raise_pipe(const std::string& path) {
  raise(errc::invalid_argument, "'" + path +
                                    "' is a pipe or a socket, on which a call could block without "
                                    "end; use weir::readable or a socket for it");
}

/// Refuses what is open but no file.
void require_file(int descriptor, const std::string& path, const std::string& what) {
  struct stat found{};
  if (::fstat(descriptor, &found) != 0) raise_system(errno, what);
  if (S_ISDIR(found.st_mode)) raise_system(EISDIR, what);
  if (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)) raise_pipe(path);
}

}  // namespace

void require_path(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    raise(errc::invalid_argument, "path '" + path.substr(0, path.find('\0')) +
                                      "...' contains a NUL character; the system would cut it off");
}

// Non-blocking, so that opening a pipe does not wait for its other end.
owned_descriptor open_file(const std::string& path, io::mode how) {
  require_path(path);
  const opening o = opening_of(how);
  const std::string what = "cannot open file '" + path + "' for " + o.purpose;
  const int flags = o.flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  int number = -1;
  do {
    number = ::open(path.c_str(), flags, 0666);
  } while (number < 0 && errno == EINTR);
  if (number < 0) {
    const int error = errno;
    struct stat found{};
    if (error == ENXIO && ::stat(path.c_str(), &found) == 0 &&
        (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode)))
      raise_pipe(path);
    raise_system(error, what);
  }
  owned_descriptor made(number);
  require_file(number, path, what);
  return made;
}

int write_fully(int descriptor, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;  // fail instead of looping
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return 0;
}

std::int64_t read_fully(int descriptor, std::span<std::byte> into) noexcept {
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t n = ::read(descriptor, into.data() + got, into.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<std::int64_t>(got);
}

// ------------------------------------------------------------------ calls

void file_core::raise_closed(const char* what) const {
  raise(errc::closed,
        std::string(what) + ": file '" + path_ + "' was closed; open it again to use it");
}

std::shared_lock<std::shared_mutex> file_core::enter(const char* what) {
  std::shared_lock<std::shared_mutex> use(use_);
  if (closed()) raise_closed(what);
  return use;
}

void file_core::require_mode(const char* what, bool allowed, const char* instead) const {
  if (allowed) return;
  throw error(std::make_error_code(std::errc::bad_file_descriptor),
              std::string(what) + ": file '" + path_ + "' was opened for " +
                  opening_of(mode_).purpose + "; open it with " + instead);
}

void file_core::require_offset(const char* what, std::uint64_t offset) const {
  if (offset <= max_offset) return;
  raise(errc::invalid_argument, std::string(what) + ": file '" + path_ + "' has no offset " +
                                    std::to_string(offset) + "; offsets end at " +
                                    std::to_string(max_offset));
}

void file_core::fail(int error, const char* what) const {
  raise_system(error, std::string("cannot ") + what + " file '" + path_ + "'");
}

void file_core::fail_write(int error, const char* what, std::size_t done, std::size_t size) const {
  raise_system(error, std::string("cannot ") + what + " file '" + path_ + "' (" +
                          std::to_string(done) + " of " + std::to_string(size) +
                          " bytes were written)");
}

std::size_t file_core::read_at(std::uint64_t offset, std::span<std::byte> into) {
  const auto use = enter("read_at");
  require_mode("read_at", reads(), "mode::update");
  require_offset("read_at", offset);
  into = into.first(
      static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), max_offset - offset)));
  std::size_t got = 0;
  while (got < into.size()) {
    const ssize_t n = ::pread(descriptor_.get(), into.data() + got, into.size() - got,
                              static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno, "read");
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return got;
}

void file_core::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto use = enter("write_at");
  require_mode("write_at", mode_ != io::mode::read, "mode::update");
  require_offset("write_at", offset);
  if (mode_ == io::mode::append)
    raise(errc::invalid_argument, "write_at: file '" + path_ +
                                      "' was opened for appending, where the system ignores "
                                      "offsets; call append, or open it with mode::update");
  for (std::size_t done = 0; done < bytes.size();) {
    if (offset + done > max_offset) fail_write(EFBIG, "write", done, bytes.size());
    const ssize_t n = ::pwrite(descriptor_.get(), bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_write(n < 0 ? errno : EIO, "write", done, bytes.size());
    done += static_cast<std::size_t>(n);
  }
}

// The end is found and written to in one call of the system, in every mode.
void file_core::append(std::span<const std::byte> bytes) {
  const auto use = enter("append");
  require_mode("append", mode_ != io::mode::read, "mode::append");
  for (std::size_t done = 0; done < bytes.size();) {
    iovec piece{const_cast<std::byte*>(bytes.data()) + done, bytes.size() - done};
    const ssize_t n = ::pwritev2(descriptor_.get(), &piece, 1, 0, RWF_APPEND);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_write(n < 0 ? errno : EIO, "append to", done, bytes.size());
    done += static_cast<std::size_t>(n);
  }
}

void file_core::sync() {
  const auto use = enter("sync");
  while (::fsync(descriptor_.get()) != 0)
    if (errno != EINTR) fail(errno, "sync");
}

std::uint64_t file_core::size() {
  const auto use = enter("size");
  struct stat found{};
  if (::fstat(descriptor_.get(), &found) != 0) fail(errno, "look at");
  return static_cast<std::uint64_t>(found.st_size);
}

// Linux has closed the descriptor even if it reports an error; EINTR is none.
void file_core::close() {
  const std::unique_lock<std::shared_mutex> alone(use_);
  if (::close(descriptor_.release()) != 0 && errno != EINTR) fail(errno, "close");
}

}  // namespace weir::detail
