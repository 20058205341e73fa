// SPDX-License-Identifier: MIT
#include "io/descriptor_acceptor.hpp"

#include <cstdio>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "io/descriptor_stream.hpp"
#include "io/open_socket.hpp"
#include "io/tls_settings.hpp"

namespace weir::detail {

descriptor_acceptor::descriptor_acceptor(owned_descriptor descriptor, std::string file,
                                         std::shared_ptr<tls_server> tls)
    : descriptor_(std::move(descriptor)),
      local_(local_of(descriptor_.get())),
      file_(std::move(file)),
      tls_(std::move(tls)) {
  struct stat found{};
  if (file_.empty() || ::lstat(file_.c_str(), &found) != 0) return;
  file_device_ = found.st_dev;
  file_number_ = found.st_ino;
}

descriptor_acceptor::~descriptor_acceptor() { close(); }

// Its own file only: another process may have replaced it meanwhile.
void descriptor_acceptor::remove_file() noexcept {
  struct stat found{};
  if (!file_.empty() && ::lstat(file_.c_str(), &found) == 0 && found.st_dev == file_device_ &&
      found.st_ino == file_number_)
    std::remove(file_.c_str());
}

void descriptor_acceptor::close() noexcept {
  if (!close_waits()) return;
  unregister(descriptor_.get());
  remove_file();
  descriptor_.reset();
}

namespace {

/// Linux reports through accept what broke a connection while it waited. That is not the listener's
/// error, and the next connection may be in order.
bool is_of_connection(int error) noexcept {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

}  // namespace

acceptor_core::accepted descriptor_acceptor::accept() {
  for (;;) {
    system_address from;
    const int number =
        ::accept4(descriptor_.get(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (number < 0) {
      if (is_of_connection(errno)) continue;
      return {nullptr, errno == EWOULDBLOCK ? EAGAIN : errno};
    }
    owned_descriptor made(number);
    const io::endpoint peer = from_system(from);
    if (peer.type() != io::endpoint::kind::unix_path) set_no_delay(number);
    auto core = std::make_unique<descriptor_stream>(std::move(made), peer);
    if (tls_ != nullptr) return {tls_->encrypt(std::move(core)), 0};
    return {std::move(core), 0};
  }
}

bool descriptor_acceptor::has_connection() noexcept {
  pollfd asked{descriptor_.get(), POLLIN, 0};
  return ::poll(&asked, 1, 0) > 0;
}

int descriptor_acceptor::watch(io_side) noexcept {
  return reactor::begin_wait(*this, descriptor_.get(), EPOLLIN | EPOLLET);
}

void descriptor_acceptor::unwatch(io_side) noexcept { reactor::end_wait(); }

void descriptor_acceptor::happened(reactor&, std::uint32_t) noexcept { ready(io_side::read); }

}  // namespace weir::detail
