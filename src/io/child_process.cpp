// SPDX-License-Identifier: MIT
#include "io/child_process.hpp"

#include <cerrno>
#include <csignal>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weir::detail {

namespace {

constexpr unsigned whole_group = 1U << 2;  // PIDFD_SIGNAL_PROCESS_GROUP, of Linux 6.9

/// The system's library declares the calls on such descriptors since 2.36, and then not for C++.
int send_signal(int descriptor, int number, unsigned flags) noexcept {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, descriptor, number, nullptr, flags));
}

}  // namespace

owned_descriptor open_process(int pid) noexcept {
  return owned_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

child_process::child_process(int pid, owned_descriptor descriptor, const std::string& program)
    : pid_(pid),
      descriptor_(std::move(descriptor)),
      text_("process '" + program + "' (" + std::to_string(pid) + ")") {}

child_process::~child_process() {
  require_idle();
  unregister(descriptor_.get());
}

io::exit_status child_process::status() const {
  if (lost_ != 0)
    raise_system(lost_, text_ +
                            " was reaped by other code of this program, which should wait for "
                            "its own children only; its exit status is lost");
  return status_;
}

bool child_process::reap(int flags) noexcept {
  if (reaped_) return true;
  siginfo_t how{};
  const auto descriptor = static_cast<id_t>(descriptor_.get());
  int failed = 0;
  do failed = ::waitid(P_PIDFD, descriptor, &how, WEXITED | flags);
  while (failed != 0 && errno == EINTR);
  if (failed != 0) {
    lost_ = errno;
  } else if (how.si_pid == 0) {
    return false;
  } else if (how.si_code == CLD_EXITED) {
    status_ = io::exit_status(how.si_status, 0);
  } else {
    status_ = io::exit_status(-1, how.si_status);
  }
  reaped_ = true;
  unregister(descriptor_.get());
  return true;
}

bool child_process::try_reap() noexcept { return reap(WNOHANG); }

int child_process::signal_group(int number) const noexcept {
  if (send_signal(descriptor_.get(), number, whole_group) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  return ::kill(-pid_, number) == 0 ? 0 : errno;
}

bool child_process::signal(int number) noexcept {
  bool any = signal_group(number) == 0;
  if (!reaped_) any = send_signal(descriptor_.get(), number, 0) == 0 || any;
  return any;
}

// A process that has taken another identity cannot be signalled: then it is not waited for either.
void child_process::end_now() noexcept {
  if (reaped_ || !process_.is_here()) return;
  reap(signal(SIGKILL) ? 0 : WNOHANG);
}

int child_process::watch(io_side) noexcept {
  return reactor::begin_wait(*this, descriptor_.get(), EPOLLIN | EPOLLET);
}

void child_process::unwatch(io_side) noexcept { reactor::end_wait(); }

void child_process::happened(reactor&, std::uint32_t) noexcept { ready(io_side::read); }

}  // namespace weir::detail
