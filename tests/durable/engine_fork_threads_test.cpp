// SPDX-License-Identifier: MIT
// Forks on one thread while another takes locks. Promise: neither the lock nor the engine goes to a
// child, at whatever moment it was forked.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "durable/support/stage.hpp"

using namespace durable_test;

namespace {

/// Whether this process has a descriptor of the file. Only what a child of threads may call.
bool has_open(std::string_view path) {
  for (int number = 0; number < 256; ++number) {
    char link[32];
    char target[512];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    const ssize_t n = ::readlink(link, target, sizeof target);
    if (n > 0 && std::string_view(target, static_cast<std::size_t>(n)) == path) return true;
  }
  return false;
}

bool child_has_open(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(has_open(path) ? 1 : 0);
  int status = 0;
  return child < 0 || ::waitpid(child, &status, 0) != child || status != 0;
}

}  // namespace

TEST(durable_fork_threads, a_lock_that_is_just_being_taken_is_not_inherited) {
  const stage on;
  const std::string path = std::filesystem::canonical(on.root()).string() + "/lock";
  std::atomic<bool> stop{false};
  std::atomic<int> refused{0};
  std::thread locks([&] {
    while (!stop) {
      try {
        (void)weir::real_disk().lock(path);
      } catch (const std::system_error&) {
        ++refused;  // a child has it
      }
    }
  });
  int inherited = 0;
  for (int i = 0; i < 100 && inherited == 0; ++i) inherited += child_has_open(path) ? 1 : 0;
  stop = true;
  locks.join();
  EXPECT_EQ(inherited, 0);
  EXPECT_EQ(refused, 0);
}
