// SPDX-License-Identifier: MIT
#include "io/pipe_stream.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace weir::detail {

namespace {

/// While it exists, a write of this thread to a broken pipe leaves no signal behind. Pipes have no
/// MSG_NOSIGNAL, and the disposition of SIGPIPE belongs to the program.
class no_sigpipe {
 public:
  no_sigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  no_sigpipe(const no_sigpipe&) = delete;
  no_sigpipe& operator=(const no_sigpipe&) = delete;
  ~no_sigpipe() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  /// If the program had it blocked, one may have been pending before, which is the program's.
  bool had_one() const noexcept {
    sigset_t pending;
    if (sigismember(&before_, SIGPIPE) == 0) return false;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
  }
  void take_one() const noexcept {
    const timespec none{};
    while (::sigtimedwait(&pipe_, nullptr, &none) < 0 && errno == EINTR) {
    }
  }

 private:
  sigset_t pipe_;
  sigset_t before_;
};

}  // namespace

pipe_stream::pipe_stream(owned_descriptor descriptor, std::string text)
    : descriptor_(std::move(descriptor)), text_(std::move(text)) {
  const int flags = ::fcntl(descriptor_.get(), F_GETFL);
  if (flags < 0 || ::fcntl(descriptor_.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    raise_system(errno, text_);
}

pipe_stream::~pipe_stream() {
  require_idle();
  close();
}

io_try pipe_stream::blocked() noexcept {
  ready_ = !registered();
  return {0, EAGAIN};
}

io_try pipe_stream::receive(std::span<std::byte> into) noexcept {
  if (!ready_) return {0, EAGAIN};
  for (;;) {
    const ssize_t n = ::read(descriptor_.get(), into.data(), into.size());
    if (n >= 0) return {static_cast<std::size_t>(n), 0};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return blocked();
    return {0, errno};
  }
}

io_try pipe_stream::send(std::span<const std::byte> bytes) noexcept {
  if (!ready_) return {0, EAGAIN};
  const no_sigpipe guard;
  const bool had_one = guard.had_one();
  for (;;) {
    const ssize_t n = ::write(descriptor_.get(), bytes.data(), bytes.size());
    if (n >= 0) return {static_cast<std::size_t>(n), 0};
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EAGAIN || error == EWOULDBLOCK) return blocked();
    if (error == EPIPE && !had_one) guard.take_one();
    return {0, error};
  }
}

void pipe_stream::close() noexcept {
  if (!close_waits()) return;
  unregister(descriptor_.get());
  descriptor_.reset();
}

bool pipe_stream::has_arrived() noexcept {
  if (!kept.empty()) return true;
  pollfd asked{descriptor_.get(), POLLIN, 0};
  return ::poll(&asked, 1, 0) != 0;
}

int pipe_stream::watch(io_side) noexcept {
  const bool first = !registered();
  const int error = reactor::begin_wait(*this, descriptor_.get(), EPOLLIN | EPOLLOUT | EPOLLET);
  if (first && error == 0) ready_ = false;
  return error;
}

void pipe_stream::unwatch(io_side) noexcept { reactor::end_wait(); }

void pipe_stream::happened(reactor& from, std::uint32_t events) noexcept {
  hung_up_ = hung_up_ || (events & (EPOLLHUP | EPOLLERR)) != 0;
  ready_ = true;
  ready(io_side::read);
  if (from.delivers_to(*this)) ready(io_side::write);
  if (from.delivers_to(*this) && hung_up_) ready(io_side::hangup);
}

}  // namespace weir::detail
