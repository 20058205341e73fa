// SPDX-License-Identifier: MIT
#include "process.hpp"

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <vector>

#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/io.hpp>

namespace shop {

namespace {

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// Runs this program with these arguments; descriptor 3 is the door.
pid_t start(std::vector<std::string> arguments, int door) {
  std::vector<char*> pointers;
  for (std::string& a : arguments) pointers.push_back(a.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, door, 3);
  pid_t pid = -1;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(error, "cannot start a process");
  return pid;
}

}  // namespace

process::process(const settings& s, int door)
    : pid_(start({"orders", "--keep", std::to_string(s.life), "--dir", s.dir.string(), "--hurry",
                  std::to_string(s.hurry), "--dies-at", std::to_string(s.dies_at_payment)},
                 door)),
      descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))) {
  if (descriptor_ >= 0) return;
  const int error = errno;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  fail(error, "cannot watch a process");
}

process::~process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(descriptor_);
}

weir::task<int> process::ended() {
  co_await weir::readable(descriptor_);  // a pidfd is readable when its process has ended
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_) fail(errno, "cannot wait for a process");
  pid_ = -1;
  co_return status;
}

void process::close() { ::kill(pid_, SIGTERM); }

}  // namespace shop
