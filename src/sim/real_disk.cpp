// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include <weir/sim/disk.hpp>

#include "core/fork_watch.hpp"
#include "sim/disk_error.hpp"

namespace weir {

namespace {

using detail::at_offset;
using detail::raise_disk;
using detail::to_size;

constexpr mode_t private_file = 0600;
constexpr mode_t private_directory = 0700;

class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&&) = delete;
  // Errors of close() are ignored: sync() has reported every error that matters, and a destructor
  // cannot throw.
  ~descriptor() { close(); }
  void close() noexcept {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  int number() const noexcept { return number_; }

 private:
  int number_;
};

/// Retries the call while it is interrupted by a signal.
template <class F>
auto uninterrupted(F&& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

descriptor open_descriptor(std::string_view call, const std::string& path, int flags) {
  const int number =
      uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, private_file); });
  if (number < 0) raise_disk(errno, call, path);
  return descriptor(number);
}

int open_flags(open_mode mode) {
  switch (mode) {
    case open_mode::read:
      return O_RDONLY;
    case open_mode::read_write:
      return O_RDWR;
    case open_mode::create:
      return O_RDWR | O_CREAT;
    case open_mode::create_new:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

class real_file final : public disk_file {
 public:
  real_file(std::string path, descriptor opened)
      : disk_file(std::move(path)), descriptor_(std::move(opened)) {}

  // An offset beyond off_t becomes negative, which the kernel rejects with EINVAL.
  std::size_t pread(std::span<std::byte> into, std::uint64_t offset) override {
    const ssize_t n = uninterrupted(
        [&] { return ::pread(fd(), into.data(), into.size(), static_cast<off_t>(offset)); });
    if (n < 0) raise_disk(errno, "pread", path(), at_offset(offset));
    return static_cast<std::size_t>(n);
  }

  std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
    const ssize_t n = uninterrupted(
        [&] { return ::pwrite(fd(), from.data(), from.size(), static_cast<off_t>(offset)); });
    if (n < 0) raise_disk(errno, "pwrite", path(), at_offset(offset));
    return static_cast<std::size_t>(n);
  }

  std::uint64_t size() const override { return static_cast<std::uint64_t>(status().st_size); }

  void truncate(std::uint64_t size) override {
    if (uninterrupted([&] { return ::ftruncate(fd(), static_cast<off_t>(size)); }) != 0)
      raise_disk(errno, "truncate", path(), to_size(size));
  }

  void preallocate(std::uint64_t size) override {
    if (size == 0) return;
    int error = 0;
    do {
      error = ::posix_fallocate(fd(), 0, static_cast<off_t>(size));
    } while (error == EINTR);
    if (error != 0) raise_disk(error, "preallocate", path(), to_size(size));
  }

  void sync() override {
    if (uninterrupted([&] { return ::fdatasync(fd()); }) != 0) raise_disk(errno, "sync", path());
  }

  struct stat status() const {
    struct stat found{};
    if (::fstat(fd(), &found) != 0) raise_disk(errno, "stat", path());
    return found;
  }

 private:
  int fd() const noexcept { return descriptor_.number(); }

  descriptor descriptor_;
};

/// A flock belongs to the open file description, which a forked child shares. The child closes its
/// descriptor, so that the lock is held by the parent alone and ends with it.
class real_lock final : public disk_lock, private detail::fork_watch {
 public:
  real_lock(std::string path, descriptor locked, const detail::no_forks& meanwhile)
      : disk_lock(std::move(path)), descriptor_(std::move(locked)) {
    watch(meanwhile);
  }
  // A child that was just forked may not have closed it yet: LOCK_UN releases the lock for both.
  ~real_lock() override {
    const detail::no_forks meanwhile;
    unwatch(meanwhile);
    if (descriptor_.number() >= 0) ::flock(descriptor_.number(), LOCK_UN);
    descriptor_.close();
  }

 private:
  void in_child() noexcept override { descriptor_.close(); }

  descriptor descriptor_;
};

class directory_reader {
 public:
  explicit directory_reader(const std::string& path)
      : path_(path), stream_(::opendir(path.c_str())) {
    if (stream_ == nullptr) raise_disk(errno, "list", path);
  }
  directory_reader(const directory_reader&) = delete;
  directory_reader& operator=(const directory_reader&) = delete;
  ~directory_reader() { ::closedir(stream_); }

  /// nullptr at the end.
  const char* next() {
    errno = 0;
    const dirent* entry = ::readdir(stream_);
    if (entry == nullptr && errno != 0) raise_disk(errno, "list", path_);
    return entry == nullptr ? nullptr : entry->d_name;
  }

 private:
  const std::string& path_;
  DIR* stream_;
};

bool is_directory(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

class posix_disk final : public disk {
 public:
  std::unique_ptr<disk_file> open(const std::string& path, open_mode mode) override {
    auto file = std::make_unique<real_file>(path, open_descriptor("open", path, open_flags(mode)));
    // The kernel opens a directory for reading and fails later; report the error here.
    if (S_ISDIR(file->status().st_mode)) raise_disk(EISDIR, "open", path);
    return file;
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      raise_disk(errno, "rename", from, " to '" + to + "'");
  }

  void unlink(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) raise_disk(errno, "unlink", path);
  }

  void make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), private_directory) == 0) return;
    const int error = errno;
    if (error != EEXIST || !is_directory(path)) raise_disk(error, "make_directory", path);
  }

  std::vector<std::string> list(const std::string& directory) override {
    std::vector<std::string> names;
    directory_reader reader(directory);
    while (const char* name = reader.next())
      if (std::string_view(name) != "." && std::string_view(name) != "..") names.emplace_back(name);
    std::sort(names.begin(), names.end());
    return names;
  }

  bool exists(const std::string& path) override {
    struct stat found{};
    if (::stat(path.c_str(), &found) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR) raise_disk(errno, "exists", path);
    return false;
  }

  void sync_directory(const std::string& directory) override {
    const descriptor opened = open_descriptor("sync_directory", directory, O_RDONLY | O_DIRECTORY);
    if (uninterrupted([&] { return ::fsync(opened.number()); }) == 0) return;
    // File systems that cannot sync a directory return EINVAL; nothing better is available there.
    if (errno != EINVAL) raise_disk(errno, "sync_directory", directory);
  }

  // flock, not a POSIX record lock: it belongs to the open file description, so a second lock in
  // the same process is refused, too, and closing another descriptor of the file does not release
  // it.
  std::unique_ptr<disk_lock> lock(const std::string& path) override {
    const detail::no_forks meanwhile;
    descriptor opened = open_descriptor("lock", path, O_RDWR | O_CREAT);
    if (uninterrupted([&] { return ::flock(opened.number(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno == EWOULDBLOCK) detail::raise_disk_locked(path);
      raise_disk(errno, "lock", path);
    }
    return std::make_unique<real_lock>(path, std::move(opened), meanwhile);
  }
};

}  // namespace

disk& real_disk() {
  static posix_disk instance;
  return instance;
}

}  // namespace weir
