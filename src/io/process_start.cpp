// SPDX-License-Identifier: MIT
#include "io/process_start.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/error.hpp>

namespace weir::detail {

namespace {

constexpr int first_free = 3;  // after standard input, output and error

/// Not one of the three standard descriptors, which may be closed in this process: they are
/// replaced in the child one after the other.
owned_descriptor beyond_standard(owned_descriptor made, const std::string& what) {
  if (!made) raise_system(errno, what);
  if (made.get() >= first_free) return made;
  owned_descriptor moved(::fcntl(made.get(), F_DUPFD_CLOEXEC, first_free));
  if (!moved) raise_system(errno, what);
  return moved;
}

struct pipe_ends {
  owned_descriptor read;
  owned_descriptor write;
};

pipe_ends make_pipe(const std::string& what) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) raise_system(errno, what);
  owned_descriptor read(ends[0]);
  owned_descriptor write(ends[1]);
  return {beyond_standard(std::move(read), what), beyond_standard(std::move(write), what)};
}

/// What happens in the child before its program begins.
class spawn_setup {
 public:
  explicit spawn_setup(const std::string& what) : what_(what) {
    require(::posix_spawn_file_actions_init(&actions_));
    if (const int error = ::posix_spawnattr_init(&attributes_); error != 0) {
      ::posix_spawn_file_actions_destroy(&actions_);
      require(error);
    }
  }
  spawn_setup(const spawn_setup&) = delete;
  spawn_setup& operator=(const spawn_setup&) = delete;
  ~spawn_setup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  void standard(int number, const owned_descriptor& is) {
    require(::posix_spawn_file_actions_adddup2(&actions_, is.get(), number));
  }
  void folder(const owned_descriptor& is) {
    require(::posix_spawn_file_actions_addfchdir_np(&actions_, is.get()));
  }
  void close_others() {
    require(::posix_spawn_file_actions_addclosefrom_np(&actions_, first_free));
  }
  void own_group_and_default_signals() {
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    require(::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
    require(::posix_spawnattr_setpgroup(&attributes_, 0));
    require(::posix_spawnattr_setsigdefault(&attributes_, &all));
    require(::posix_spawnattr_setsigmask(&attributes_, &none));
  }

  const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }
  const posix_spawnattr_t* attributes() const noexcept { return &attributes_; }

 private:
  void require(int error) const {
    if (error != 0) raise_system(error, what_);
  }

  std::string what_;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// The environment of the child: ours, with the variables of the command in place of ours.
std::vector<std::string> environment_of(const io::command& what) {
  const auto sets = [&](std::string_view entry) {
    const std::string_view key = entry.substr(0, entry.find('='));
    for (const auto& [name, value] : what.variables())
      if (name == key) return true;
    return false;
  };
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (!sets(*entry)) all.emplace_back(*entry);
  for (auto v = what.variables().begin(); v != what.variables().end(); ++v) {
    bool set_again = false;
    for (auto later = std::next(v); later != what.variables().end(); ++later)
      set_again = set_again || later->first == v->first;
    if (!set_again) all.push_back(v->first + "=" + v->second);
  }
  return all;
}

/// Where the program may be, in order.
std::vector<std::string> candidates_of(const io::command& what) {
  const std::string& program = what.program();
  if (program.find('/') != std::string::npos) return {program};
  const char* const ours = std::getenv("PATH");
  std::string path = ours == nullptr ? "/usr/local/bin:/usr/bin:/bin" : ours;
  for (const auto& [key, value] : what.variables())
    if (key == "PATH") path = value;
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    found.push_back((folder.empty() ? "." : folder) + "/" + program);
    begin = end + 1;
  }
  return found;
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

/// Whether the search goes on after this error.
bool looks_further(int error) noexcept {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
         error == ENAMETOOLONG;
}

/// The error of starting a program there, if that is known without trying: a try costs a process.
/// What is relative begins at the child's folder, and is tried.
int known_error(const std::string& path) noexcept {
  if (path.front() != '/') return 0;
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/// Its process number.
int spawn_first(const io::command& what, const spawn_setup& setup, const std::string& text) {
  const std::vector<std::string> variables = environment_of(what);
  const std::vector<char*> arguments = pointers_to(what.words());
  const std::vector<char*> environment = pointers_to(variables);
  int refused = ENOENT;
  for (const std::string& path : candidates_of(what)) {
    pid_t pid = 0;
    int error = known_error(path);
    if (error == 0)
      error = ::posix_spawn(&pid, path.c_str(), setup.actions(), setup.attributes(),
                            arguments.data(), environment.data());
    if (error == 0) return pid;
    if (!looks_further(error)) raise_system(error, text);
    if (error == EACCES) refused = error;  // says more than that it was found nowhere
  }
  raise_system(refused, text);
}

void require_kept_status(const std::string& what) {
  struct sigaction now{};
  if (::sigaction(SIGCHLD, nullptr, &now) != 0) return;
  if (now.sa_handler != SIG_IGN && (now.sa_flags & SA_NOCLDWAIT) == 0) return;
  raise(errc::invalid_argument, what +
                                    ": SIGCHLD is ignored, so the system keeps no exit status; "
                                    "give SIGCHLD its default disposition");
}

}  // namespace

started_process start_process(const io::command& what, bool with_input) {
  const std::string text = "start of '" + what.program() + "'";
  require_kept_status(text);
  pipe_ends in;
  if (with_input) {
    in = make_pipe(text);
  } else {
    in.read = beyond_standard(owned_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)), text);
  }
  pipe_ends out = make_pipe(text);
  pipe_ends err = make_pipe(text);
  owned_descriptor folder;
  if (!what.folder().empty()) {
    const std::string there = text + " in '" + what.folder() + "'";
    constexpr int how = O_PATH | O_DIRECTORY | O_CLOEXEC;
    folder = beyond_standard(owned_descriptor(::open(what.folder().c_str(), how)), there);
  }
  started_process made;
  const std::string of = " of process '" + what.program() + "'";
  if (with_input) made.in = std::make_unique<pipe_stream>(std::move(in.write), "input" + of);
  made.out = std::make_unique<pipe_stream>(std::move(out.read), "output" + of);
  made.err = std::make_unique<pipe_stream>(std::move(err.read), "errors" + of);

  spawn_setup setup(text);
  setup.standard(STDIN_FILENO, in.read);
  setup.standard(STDOUT_FILENO, out.write);
  setup.standard(STDERR_FILENO, err.write);
  if (folder) setup.folder(folder);
  setup.close_others();
  setup.own_group_and_default_signals();
  const int pid = spawn_first(what, setup, text);
  try {
    owned_descriptor descriptor = open_process(pid);
    if (!descriptor) raise_system(errno, text);
    made.child = std::make_unique<child_process>(pid, std::move(descriptor), what.program());
  } catch (...) {
    ::kill(-pid, SIGKILL);
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    throw;
  }
  return made;
}

}  // namespace weir::detail
