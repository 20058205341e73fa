// SPDX-License-Identifier: MIT
//
// The server under load: a process of its own on a core of its own, whose processor time and memory
// are read from outside, so that every server is measured in the same way. Linux only.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace bench {

[[noreturn]] inline void give_up(const std::string& what) {
  std::fprintf(stderr, "io_load: %s%s%s\n", what.c_str(), errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  std::exit(1);
}

/// The first and the last core that this process may use: for the server and for its clients.
struct core_pair {
  core_pair() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &allowed)) continue;
      if (server < 0) server = core;
      client = core;
    }
  }
  static void use(int core) {
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(core, &chosen);
    if (sched_setaffinity(0, sizeof chosen, &chosen) != 0) give_up("cannot stay on one core");
  }

  int server = -1;
  int client = -1;
};

/// Both sides of every connection need a descriptor; the server inherits the limit.
inline void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) give_up("cannot read the limit of descriptors");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) give_up("cannot raise the limit of descriptors");
}

/// Starts `command PORT BUFFER` with port 0, on a core unless that is -1, and reads the port that
/// it prints. Its end is a SIGTERM, so that a profiler may be part of the command.
class server_process {
 public:
  server_process(char** command, int count, int buffer, int core) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) give_up("no pipe");
    pid_ = fork();
    if (pid_ < 0) give_up("no process");
    if (pid_ == 0) become(command, count, buffer, core, ends[1]);
    close(ends[1]);
    port_ = read_port(ends[0]);
    close(ends[0]);
    if (clock_getcpuclockid(pid_, &clock_) != 0) give_up("no clock of the server's processor time");
  }
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
  ~server_process() { end(); }

  int port() const noexcept { return port_; }

  /// User and system time of all its threads.
  double cpu_nanoseconds() const {
    timespec used{};
    if (clock_gettime(clock_, &used) != 0) give_up("the server is gone");
    return double(used.tv_sec) * 1e9 + double(used.tv_nsec);
  }

  /// Bytes of its own memory that it has touched; code and the kernel's memory are not counted.
  std::int64_t bytes_in_use() const {
    const std::string path = "/proc/" + std::to_string(pid_) + "/smaps_rollup";
    std::FILE* file = std::fopen(path.c_str(), "r");
    if (file == nullptr) give_up("cannot read " + path);
    long long kibibytes = -1;
    char line[256];
    while (kibibytes < 0 && std::fgets(line, sizeof line, file) != nullptr) {
      if (std::strncmp(line, "Anonymous:", 10) == 0) kibibytes = std::atoll(line + 10);
    }
    std::fclose(file);
    return kibibytes * 1024;
  }

 private:
  // In the child. Huge pages are off, as for other programs that report memory.
  [[noreturn]] static void become(char** command, int count, int buffer, int core, int out) {
    if (core >= 0) core_pair::use(core);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    dup2(out, STDOUT_FILENO);
    std::string port = "0";
    std::string size = std::to_string(buffer);
    char** const arguments = new char*[static_cast<std::size_t>(count) + 3];
    for (int i = 0; i < count; ++i) arguments[i] = command[i];
    arguments[count] = port.data();
    arguments[count + 1] = size.data();
    arguments[count + 2] = nullptr;
    execvp(arguments[0], arguments);
    std::fprintf(stderr, "io_load: cannot start %s: %s\n", arguments[0], std::strerror(errno));
    _exit(1);
  }

  void end() const {
    kill(pid_, SIGTERM);
    for (int i = 0; i < 1000; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) return;
      usleep(10'000);
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  static int read_port(int from) {
    std::string text;
    char c = 0;
    while (read(from, &c, 1) == 1 && c != '\n') text += c;
    const int port = std::atoi(text.c_str());
    errno = 0;
    if (port <= 0) give_up("the server printed no port but '" + text + "'");
    return port;
  }

  pid_t pid_ = -1;
  int port_ = 0;
  clockid_t clock_{};
};

}  // namespace bench
