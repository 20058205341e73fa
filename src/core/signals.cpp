// SPDX-License-Identifier: MIT
#include "core/signals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include <weir/error.hpp>

namespace weir::detail {

namespace {

constexpr std::array<int, 3> watched{SIGINT, SIGTERM, SIGQUIT};
constexpr std::size_t max_watches = 64;

// Read by signal handlers: lock-free atomics only.
std::array<std::atomic<door*>, max_watches> doors{};
static_assert(std::atomic<door*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

std::mutex mutex;
std::array<bool, max_watches> taken{};
std::size_t watches = 0;
std::size_t installed = 0;  // watches of a loop
std::uint64_t claimed = 0;  // a bit for each signal that streams have
std::array<struct sigaction, watched.size()> earlier{};

std::atomic<int> running_handlers{0};
std::atomic<bool> dump_asked{false};  // process-wide: one loop prints all of them

constexpr std::uint64_t claim_bit(int number) noexcept { return std::uint64_t{1} << (number - 1); }

void on_signal(int number) {
  const int kept = errno;
  running_handlers.fetch_add(1);
  bool third = false;
  if (number == SIGQUIT) dump_asked.store(true, std::memory_order_release);
  for (auto& place : doors) {
    door* d = place.load(std::memory_order_acquire);
    if (d == nullptr) continue;
    if (number != SIGQUIT)
      third = d->interrupts.fetch_add(1, std::memory_order_acq_rel) >= 2 || third;
    d->wake();
  }
  if (third) std::abort();
  running_handlers.fetch_sub(1);
  errno = kept;
}

}  // namespace

signal_watch::signal_watch() : place_(0) {
  const std::lock_guard lock(mutex);
  for (const int number : watched)
    if ((claimed & claim_bit(number)) != 0)
      raise(errc::busy, "handle_signals: a stream of io::signals has signal " +
                            std::to_string(number) + "; destroy it first");
  while (place_ < max_watches && taken[place_]) ++place_;
  if (place_ == max_watches)
    raise(errc::overloaded, "too many loops handle signals; let one of them do it");
  taken[place_] = true;
  ++watches;
}

void signal_watch::watch(door_ref to) noexcept {
  const std::lock_guard lock(mutex);
  door_ = std::move(to);
  doors[place_].store(door_.get(), std::memory_order_release);
  if (installed++ > 0) return;
  struct sigaction mine{};
  mine.sa_handler = on_signal;
  mine.sa_flags = SA_RESTART;
  sigemptyset(&mine.sa_mask);
  for (std::size_t i = 0; i < watched.size(); ++i) sigaction(watched[i], &mine, &earlier[i]);
}

signal_watch::~signal_watch() {
  const std::lock_guard lock(mutex);
  if (door_ != nullptr && --installed == 0)
    for (std::size_t i = 0; i < watched.size(); ++i) sigaction(watched[i], &earlier[i], nullptr);
  doors[place_].store(nullptr);
  // A handler on another thread may just have read the slot; the door must outlive it.
  while (running_handlers.load() > 0) std::this_thread::yield();
  taken[place_] = false;
  if (--watches == 0) dump_asked.store(false);  // no loop is left to answer a pending request
}

bool signal_watch::take_dump_request() noexcept {
  return dump_asked.load(std::memory_order_relaxed) &&
         dump_asked.exchange(false, std::memory_order_acquire);
}

void claim_signal(int number) {
  const std::lock_guard lock(mutex);
  if (watches > 0 && std::find(watched.begin(), watched.end(), number) != watched.end())
    raise(errc::busy, "io::signals: signal " + std::to_string(number) +
                          " belongs to a loop that runs with handle_signals");
  claimed |= claim_bit(number);
}

void unclaim_signal(int number) noexcept {
  const std::lock_guard lock(mutex);
  claimed &= ~claim_bit(number);
}

no_signals::no_signals() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

no_signals::~no_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

namespace {

thread_local sigset_t program_mask;
thread_local bool has_program_mask = false;

}  // namespace

void keep_program_mask(const sigset_t& mask) noexcept {
  program_mask = mask;
  has_program_mask = true;
}

program_signals::program_signals() noexcept {
  pthread_sigmask(SIG_SETMASK, has_program_mask ? &program_mask : nullptr, &before_);
}

program_signals::~program_signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace weir::detail
