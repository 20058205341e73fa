// SPDX-License-Identifier: MIT
// write_file: a temporary file in the folder of the target, synced, renamed over the target, and
// the folder synced. All of it is one call on the blocking pool, so a cancellation is before or
// after.
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/blocking.hpp>
#include <weir/io/file.hpp>

#include "io/file_core.hpp"

namespace weir::io {

namespace {

using detail::owned_descriptor;
using detail::raise_system;

/// Where the bytes go.
struct write_target {
  std::string path;
  std::string folder;
  struct stat before{};  // if it exists
  bool exists = false;
};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// The file behind a symbolic link, so that the link stays one.
std::string resolved(const std::string& path, const std::string& what) {
  struct free_text {
    void operator()(char* text) const noexcept { std::free(text); }
  };
  const std::unique_ptr<char, free_text> real(::realpath(path.c_str(), nullptr));
  const int error = errno;
  if (real == nullptr) raise_system(error, what + ", a symbolic link");
  return real.get();
}

write_target find_target(const std::string& path, const std::string& what) {
  detail::require_path(path);
  write_target found{.path = path, .folder = {}};
  struct stat entry{};
  if (::lstat(path.c_str(), &entry) == 0) {
    if (S_ISLNK(entry.st_mode)) found.path = resolved(path, what);
    if (::stat(found.path.c_str(), &found.before) != 0) raise_system(errno, what);
    if (S_ISDIR(found.before.st_mode)) raise_system(EISDIR, what);
    if (!S_ISREG(found.before.st_mode))
      detail::raise(errc::invalid_argument,
                    what + ": it is not a regular file, and would be replaced by one");
    found.exists = true;
  } else if (errno != ENOENT) {
    raise_system(errno, what);
  }
  found.folder = folder_of(found.path);
  return found;
}

/// Removes its file unless that was renamed.
class temporary_file {
 public:
  temporary_file(const std::string& folder, const std::string& what) {
    static std::atomic<unsigned> last{0};
    for (int tries = 0;; ++tries) {
      path_ = folder + "/.weir-" + std::to_string(::getpid()) + "-" +
              std::to_string(last.fetch_add(1, std::memory_order_relaxed)) + ".tmp";
      // O_EXCL creates a file or fails: it follows no link, not even a dangling one.
      const int number = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (number >= 0) {
        descriptor_.reset(number);
        return;
      }
      // A process with this number may have been killed here.
      const int error = errno;
      if (error == EINTR || (error == EEXIST && tries < 10'000)) continue;
      raise_system(error, what + " by way of '" + path_ + "'");
    }
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  int get() const noexcept { return descriptor_.get(); }
  /// An error of the system, or 0.
  int close() noexcept { return ::close(descriptor_.release()) != 0 && errno != EINTR ? errno : 0; }
  int rename_to(const std::string& to) noexcept {
    if (::rename(path_.c_str(), to.c_str()) != 0) return errno;
    path_.clear();
    return 0;
  }

 private:
  std::string path_;
  owned_descriptor descriptor_;
};

int sync_fully(int descriptor) noexcept {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

/// Before anything is written: a secret must not be readable for a moment.
int copy_mode(int descriptor, const struct stat& from) noexcept {
  struct stat made{};
  if (::fstat(descriptor, &made) != 0) return errno;
  mode_t bits = from.st_mode & 07777;
  const bool owned = made.st_uid == from.st_uid && made.st_gid == from.st_gid;
  // Another owner must not get what was set for the earlier one.
  if (!owned && ::fchown(descriptor, from.st_uid, from.st_gid) != 0) bits &= 0777;
  return ::fchmod(descriptor, bits) != 0 ? errno : 0;
}

void sync_folder(const std::string& folder, const std::string& what) {
  const owned_descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const int error = opened ? sync_fully(opened.get()) : errno;
  // EINVAL: a file system that cannot sync folders.
  if (error != 0 && error != EINVAL)
    raise_system(error,
                 what + " durably: it is written, but folder '" + folder + "' was not synced");
}

void replace_file(const std::string& path, std::string_view text) {
  const std::string what = "cannot write file '" + path + "'";
  const auto require = [&what](int error) {
    if (error != 0) raise_system(error, what);
  };
  const write_target to = find_target(path, what);
  temporary_file made(to.folder, what);
  if (to.exists) require(copy_mode(made.get(), to.before));
  require(detail::write_fully(made.get(), std::as_bytes(std::span(text))));
  require(sync_fully(made.get()));
  require(made.close());
  require(made.rename_to(to.path));
  sync_folder(to.folder, what);
}

task<> replace_on_pool(std::string path, std::string text) {
  auto call = [&path, &text] { replace_file(path, text); };
  co_await blocking(call);
}

}  // namespace

task<> write_file(std::string_view path, std::string_view text) {
  return replace_on_pool(std::string(path), std::string(text));
}

task<> write_file(std::string_view path, std::span<const std::byte> bytes) {
  return write_file(path,
                    std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace weir::io
