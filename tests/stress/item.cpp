// SPDX-License-Identifier: MIT
#include "stress/item.hpp"

#include <utility>

namespace fuzz {

namespace {

constexpr std::uint32_t mark_alive = 0x600d600d;
constexpr std::uint32_t mark_dead = 0xdeaddead;

ledger* current = nullptr;

}  // namespace

ledger::ledger() noexcept { current = this; }
ledger::~ledger() { current = nullptr; }

void ledger::set_trap(int every, int times, std::function<void()> trap) {
  every_ = every;
  until_trap_ = every;
  times_ = times;
  trap_ = std::move(trap);
}

void ledger::disarm() noexcept {
  fuse_ = 0;
  times_ = 0;
}

void ledger::moved() {
  if (fuse_ > 0 && --fuse_ == 0) {
    burnt_ = true;
    throw boom(99);
  }
}

// A trap is not sprung inside of itself: what it destroys would call it without end.
void ledger::destroyed(bool had_value) noexcept {
  --alive_;
  if (!had_value || in_trap_ || times_ == 0 || --until_trap_ > 0) return;
  until_trap_ = every_;
  --times_;
  ++sprung_;
  in_trap_ = true;
  trap_();
  in_trap_ = false;
}

item::item(int number) : value_(number), mark_(mark_alive) { ++current->alive_; }
item::item(const item& other) : value_(other.value_), mark_(mark_alive) {
  current->moved();
  ++current->alive_;
}
item::item(item&& other) : value_(other.value_), mark_(mark_alive) {
  current->moved();
  other.value_ = -1;
  ++current->alive_;
}
item& item::operator=(const item& other) {
  if (this == &other) return *this;
  current->moved();
  value_ = other.value_;
  return *this;
}
item& item::operator=(item&& other) {
  if (this == &other) return *this;
  current->moved();
  value_ = std::exchange(other.value_, -1);
  return *this;
}
item::~item() {
  // Volatile: the compiler knows that nobody may look at a destroyed object.
  volatile std::uint32_t& mark = mark_;
  if (mark != mark_alive) {
    ++current->destroyed_twice_;
    return;
  }
  mark = mark_dead;
  current->destroyed(value_ != -1);
}

}  // namespace fuzz
