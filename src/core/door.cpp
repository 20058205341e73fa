// SPDX-License-Identifier: MIT
#include "core/door.hpp"

#include <cerrno>
#include <ctime>
#include <mutex>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace weir::detail {

bell::bell(const std::string& loop_name) {
  const no_forks meanwhile;
  number_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (number_ < 0)
    throw std::system_error(
        errno, std::generic_category(),
        "weir: eventfd for loop '" + loop_name + "'; raise the limit of open files");
  watch(meanwhile);
}

bell::~bell() {
  const no_forks meanwhile;
  unwatch(meanwhile);
  if (number_ >= 0) ::close(number_);
}

// Without an own eventfd the child gets -1: its number may soon be that of another file.
void bell::in_child() noexcept {
  const int fresh = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fresh < 0 || ::dup3(fresh, number_, O_CLOEXEC) < 0) ::close(std::exchange(number_, -1));
  if (fresh >= 0) ::close(fresh);
}

door::door(std::string name, std::uint32_t serial, bool simulated, const void* clock)
    : name_(std::move(name)), serial_(serial), simulated_(simulated), clock_(clock) {
  if (!simulated) bell_.emplace(name_);
}

door::~door() = default;

bool door::post(message& m) noexcept {
  switch (messages.post(m)) {
    case inbox::posted::closed:
      m.refuse();
      return false;
    case inbox::posted::was_sleeping:
      wake();
      return true;
    case inbox::posted::awake:
      return true;
  }
  return true;
}

void door::wake() noexcept {
  if (simulated_) return rang_.store(true, std::memory_order_release);
  const std::uint64_t one = 1;
  // Fails if the counter is full (then a wake-up is pending) or in a forked child without a bell.
  [[maybe_unused]] const auto written = ::write(bell_->number(), &one, sizeof one);
}

void door::sleep(std::int64_t nanoseconds) noexcept {
  if (!messages.begin_sleep()) return;
  pollfd wake{bell_->number(), POLLIN, 0};
  timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  const int ready = ::ppoll(&wake, 1, nanoseconds < 0 ? nullptr : &limit, nullptr);
  messages.end_sleep();
  if (ready > 0) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto got = ::read(bell_->number(), &rings, sizeof rings);
  }
}

namespace {

struct open_doors {
  std::mutex mutex;
  std::vector<door_ref> doors;
  std::unordered_map<std::uint32_t, door_ref> inner;  // the hosts of inner loops
  std::uint32_t next_serial = 0;

  // 0 and the largest number are not valid loops: see permit.
  std::uint32_t new_serial() noexcept {
    if (++next_serial == ~std::uint32_t{0}) next_serial = 1;
    return next_serial;
  }
};

open_doors& all_doors() {
  static open_doors* const instance = new open_doors;  // never destroyed: threads may outlive main
  return *instance;
}

}  // namespace

door_ref door_table::add(std::string name, bool simulated, const void* clock,
                         std::uint32_t& index) {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  auto made = std::make_shared<door>(std::move(name), t.new_serial(), simulated, clock);
  for (index = 0; index < t.doors.size(); ++index) {
    if (t.doors[index] == nullptr) {
      t.doors[index] = made;
      return made;
    }
  }
  t.doors.push_back(made);
  return made;
}

void door_table::remove(std::uint32_t index) noexcept {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  t.doors[index] = nullptr;
}

door_ref door_table::find(std::uint32_t index, std::uint32_t serial) noexcept {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  if (index >= t.doors.size() || t.doors[index] == nullptr) return nullptr;
  return t.doors[index]->serial() == serial ? t.doors[index] : nullptr;
}

door_ref door_table::find_serial(std::uint32_t serial) noexcept {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  for (const door_ref& d : t.doors)
    if (d != nullptr && d->serial() == serial) return d;
  const auto host = t.inner.find(serial);
  return host == t.inner.end() ? nullptr : host->second;
}

std::uint32_t door_table::add_inner(const door_ref& host) {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  const std::uint32_t serial = t.new_serial();
  t.inner.emplace(serial, host);
  return serial;
}

void door_table::remove_inner(std::uint32_t serial) noexcept {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  t.inner.erase(serial);
}

bool door_table::is_inner(std::uint32_t serial) noexcept {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  return t.inner.contains(serial);
}

std::vector<door_ref> door_table::all() {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  std::vector<door_ref> found;
  for (const door_ref& d : t.doors)
    if (d != nullptr) found.push_back(d);
  return found;
}

}  // namespace weir::detail
