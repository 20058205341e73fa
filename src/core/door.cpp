// SPDX-License-Identifier: MIT
#include "core/door.hpp"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace weir::detail {

door::door(std::string name, std::uint32_t serial, bool simulated, const void* clock)
    : name_(std::move(name)), serial_(serial), simulated_(simulated), clock_(clock) {}

bool door::post(message& m) noexcept {
  ++posted_by_thread_;
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

void door::sleep(std::int64_t nanoseconds, parker* where) noexcept {
  if (!messages.begin_sleep()) return;
  if (where == nullptr) {
    bell_.sleep(nanoseconds);
  } else {
    bell_.sleep_in(*where, nanoseconds);
  }
  messages.end_sleep();
}

namespace {

struct open_doors {
  std::mutex mutex;
  std::vector<door_ref> doors;
  /// The serial numbers of inner loops and of their hosts. There may be a million: no references.
  std::unordered_map<std::uint32_t, std::uint32_t> inner;
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
  const auto host = t.inner.find(serial);
  const std::uint32_t wanted = host == t.inner.end() ? serial : host->second;
  for (const door_ref& d : t.doors)
    if (d != nullptr && d->serial() == wanted) return d;
  return nullptr;
}

std::uint32_t door_table::add_inner(const door_ref& host) {
  open_doors& t = all_doors();
  const std::lock_guard lock(t.mutex);
  const std::uint32_t serial = t.new_serial();
  t.inner.emplace(serial, host->serial());
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
