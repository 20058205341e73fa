// SPDX-License-Identifier: MIT
//
// A directory for the files of a benchmark, on the disk of the build directory: beside the program,
// because /tmp is memory on some machines. $WEIR_BENCH_DISK is another place for it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace bench {

/// Made here and removed at the end, with all that is in it.
class scratch {
 public:
  explicit scratch(const char* program) {
    const char* given = std::getenv("WEIR_BENCH_DISK");
    const std::filesystem::path beside = std::filesystem::absolute(program).parent_path();
    path_ = (given != nullptr ? std::filesystem::path(given) : beside) / "scratch-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      std::perror(path_.c_str());
      std::exit(3);
    }
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Drops all files below a directory from the page cache, so that they are read from the disk.
inline void make_cold(const std::string& directory) {
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (!file.is_regular_file()) continue;
    const int fd = open(file.path().c_str(), O_RDONLY);
    if (fd < 0) continue;
    fdatasync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
}

}  // namespace bench
