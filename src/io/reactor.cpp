// SPDX-License-Identifier: MIT
#include "io/reactor.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include <unistd.h>

#include "io/foreign_descriptor.hpp"
#include "io/system.hpp"

namespace weir::detail {

namespace {

std::atomic<std::uint64_t> calls{0};
constexpr std::chrono::nanoseconds look_time{5000};

// Kernels before 5.11 have no epoll_pwait2, and the filters of some containers refuse it, with
// EPERM: then it sleeps in milliseconds, never too short.
int wait_for_events(int epoll, epoll_event* events, int room, const timespec* limit) noexcept {
  static std::atomic<bool> missing{false};
  calls.fetch_add(1, std::memory_order_relaxed);
  if (!missing.load(std::memory_order_relaxed)) {
    const int n = ::epoll_pwait2(epoll, events, room, limit, nullptr);
    if (n >= 0 || errno == EINTR) return n;
    missing.store(true, std::memory_order_relaxed);
  }
  constexpr std::int64_t most = 3'600'000;
  int milliseconds = -1;
  if (limit != nullptr) {
    const std::int64_t wanted = limit->tv_sec >= most / 1000
                                    ? most
                                    : limit->tv_sec * 1000 + (limit->tv_nsec + 999'999) / 1'000'000;
    milliseconds = static_cast<int>(wanted);
  }
  return ::epoll_wait(epoll, events, room, milliseconds);
}

}  // namespace

std::uint64_t reactor::system_calls() noexcept { return calls.load(std::memory_order_relaxed); }

void reactor_entry::forget() noexcept {
  if (reactor_ == nullptr) return;
  if (reactor_->delivering_ == this) reactor_->delivering_ = nullptr;
  for (int i = reactor_->at_; i < reactor_->found_; ++i) {
    epoll_event& event = reactor_->events_[static_cast<std::size_t>(i)];
    if (event.data.ptr == this) event.data.ptr = nullptr;
  }
  (previous_ == nullptr ? reactor_->entries_ : previous_->next_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  reactor_ = nullptr;
  previous_ = next_ = nullptr;
}

void reactor_entry::unregister(int descriptor) noexcept {
  if (reactor_ == nullptr) return;
  if (reactor_->process_.is_here()) {  // a forked child shares the instance with its parent
    calls.fetch_add(1, std::memory_order_relaxed);
    ::epoll_ctl(reactor_->epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  }
  forget();
}

reactor& reactor::here() {
  loop& here = *loop::here();
  if (here.parker() == nullptr) here.set_parker(std::make_unique<reactor>(here));
  return static_cast<reactor&>(*here.parker());
}

reactor::reactor(loop& of) : loop_(of), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) raise_system(errno, "epoll of loop '" + of.own_door().name() + "'");
  try {
    const int bell = of.own_door().descriptor();
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.ptr = nullptr;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, bell, &event) != 0)
      raise_system(errno, "epoll of loop '" + of.own_door().name() + "'");
  } catch (const std::system_error& e) {
    ::close(epoll_);
    raise_system(e.code().value(), "epoll of loop '" + of.own_door().name() + "'");
  }
}

reactor::~reactor() {
  foreign_.clear();
  while (entries_ != nullptr) entries_->forget();
  ::close(epoll_);
}

int reactor::begin_wait(reactor_entry& entry, int descriptor, std::uint32_t events) noexcept {
  try {
    reactor& here = reactor::here();
    if (++here.waits_ == 1) here.readiness_.expect(here.loop_);
    return entry.registered() ? 0 : here.add(entry, descriptor, events);
  } catch (const std::system_error& e) {
    return e.code().value();
  } catch (...) {
    return ENOMEM;
  }
}

void reactor::end_wait() noexcept {
  auto* const here = static_cast<reactor*>(loop::here()->parker());
  if (here == nullptr || here->waits_ == 0) return;
  if (--here->waits_ == 0) here->readiness_.settle();
}

bool reactor::collect(const timespec* limit) noexcept {
  const int n = wait_for_events(epoll_, events_.data(), static_cast<int>(batch), limit);
  at_ = 0;
  found_ = n < 0 ? 0 : n;  // interrupted: nothing was found
  collected_ = true;
  return n != 0;
}

// A peer that answers at once is answered sooner than a sleeping thread could be woken, and for
// less processor time. Where the peer needs this core the looks fail, and are soon given up. A look
// is a system call, so a spinner, which counts pauses and knows only threads of this process, is
// not for it.
bool reactor::look_before_sleep() noexcept {
  if (looks_left_ == 0) {
    if (++sleeps_without_look_ < sleeps_per_look) return false;
    sleeps_without_look_ = 0;
    looks_left_ = 1;
  }
  const timespec none{};
  const auto until = std::chrono::steady_clock::now() + look_time;
  do {
    if (collect(&none)) {
      looks_left_ = looks_granted;
      return true;
    }
  } while (std::chrono::steady_clock::now() < until);
  --looks_left_;
  return false;
}

void reactor::sleep(std::int64_t nanoseconds) noexcept {
  const bool long_enough = nanoseconds < 0 || nanoseconds > look_time.count();
  if (long_enough && look_before_sleep()) return;
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  collect(nanoseconds < 0 ? nullptr : &limit);
}

bool reactor::deliver() noexcept {
  if (!std::exchange(collected_, false)) {
    const timespec none{};
    collect(&none);
    collected_ = false;
  }
  bool any = false;
  while (at_ < found_) {
    const epoll_event event = events_[static_cast<std::size_t>(at_++)];
    if (event.data.ptr == nullptr) continue;  // the bell, or an entry that is gone
    any = true;
    delivering_ = static_cast<reactor_entry*>(event.data.ptr);
    delivering_->happened(*this, event.events);
  }
  delivering_ = nullptr;
  return any;
}

int reactor::add(reactor_entry& entry, int descriptor, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &entry;
  calls.fetch_add(1, std::memory_order_relaxed);
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return errno;
  entry.reactor_ = this;
  entry.previous_ = nullptr;
  entry.next_ = entries_;
  if (entries_ != nullptr) entries_->previous_ = &entry;
  entries_ = &entry;
  return 0;
}

int reactor::change(reactor_entry& entry, int descriptor, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.ptr = &entry;
  calls.fetch_add(1, std::memory_order_relaxed);
  return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) == 0 ? 0 : errno;
}

foreign_descriptor& reactor::foreign(int descriptor) {
  std::unique_ptr<foreign_descriptor>& place = foreign_[descriptor];
  if (place == nullptr) place = std::make_unique<foreign_descriptor>(*this, descriptor);
  return *place;
}

void reactor::drop_foreign(int descriptor) noexcept { foreign_.erase(descriptor); }

}  // namespace weir::detail
