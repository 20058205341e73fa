// SPDX-License-Identifier: MIT
#include <weir/io/ready.hpp>

#include <cerrno>

#include <poll.h>
#include <sys/stat.h>

#include <weir/detail/core/run_rules.hpp>

#include "core/loop.hpp"
#include "io/foreign_descriptor.hpp"
#include "io/system.hpp"

namespace weir::detail {

std::uint32_t event_of(io_side side) noexcept {
  return side == io_side::read ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;
}

int foreign_descriptor::apply() noexcept {
  return reactor_->change(*this, number_, wanted_ | EPOLLONESHOT);
}

int foreign_descriptor::watch(io_side side) noexcept {
  const bool first = wanted_ == 0;
  wanted_ |= event_of(side);
  const int error = reactor::begin_wait(*this, number_, wanted_ | EPOLLONESHOT);
  return first || error != 0 ? error : apply();
}

void foreign_descriptor::unwatch(io_side side) noexcept {
  reactor::end_wait();
  wanted_ &= ~event_of(side);
  if (wanted_ == 0) {
    unregister(number_);
  } else {
    apply();
  }
}

// The event has disarmed the registration: what is still waited for is armed again.
void foreign_descriptor::happened(reactor& from, std::uint32_t events) noexcept {
  const bool broken = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (broken || (events & (EPOLLIN | EPOLLRDHUP)) != 0) ready(io_side::read);
  if (from.delivers_to(*this) && (broken || (events & EPOLLOUT) != 0)) ready(io_side::write);
  if (from.delivers_to(*this) && wanted_ != 0) apply();
}

namespace {

// Ready already, in error, or not.
bool is_ready(int descriptor, io_side side) noexcept {
  pollfd asked{descriptor, static_cast<short>(side == io_side::read ? POLLIN | POLLRDHUP : POLLOUT),
               0};
  int n = 0;
  do n = ::poll(&asked, 1, 0);
  while (n < 0 && errno == EINTR);
  return n > 0;
}

const char* name_of(io_side side) noexcept {
  return side == io_side::read ? "readable" : "writable";
}

foreign_descriptor* use_foreign(const ready_wait::args& a) {
  require_no_run(name_of(a.side));
  loop& here = require_fiber(name_of(a.side));
  if (here.env().simulated())
    raise(errc::invalid_argument, std::string(name_of(a.side)) + ": descriptor " +
                                      std::to_string(a.descriptor) +
                                      " is real, and a simulation waits for nothing real");
  return &reactor::here().foreign(a.descriptor);
}

}  // namespace

ready_wait::ready_wait(args&& a) : io_operation(use_foreign(a), a.side, name_of(a.side)) {
  foreign().users += 1;
}

// Withdrawn first: the entry goes with the last operation that uses it.
ready_wait::~ready_wait() {
  withdraw();
  if (--foreign().users == 0) foreign().in().drop_foreign(foreign().number());
}

foreign_descriptor& ready_wait::foreign() const noexcept {
  return static_cast<foreign_descriptor&>(*source_);
}

bool ready_wait::try_now() noexcept {
  if (!may_try()) return true;
  struct stat found{};
  if (::fstat(foreign().number(), &found) != 0) return fail(errno);
  if (S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))
    return fail(errc::invalid_argument, "is a plain file, which is always ready: use io::file");
  return is_ready(foreign().number(), side());
}

}  // namespace weir::detail
