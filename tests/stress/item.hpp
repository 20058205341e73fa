// SPDX-License-Identifier: MIT
// What flows through the random programs: a number whose life is counted, and which may be hostile.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace fuzz {

/// The error of everything that fails on purpose.
class boom : public std::runtime_error {
 public:
  explicit boom(int n) : runtime_error("boom " + std::to_string(n)), number(n) {}
  int number;
};

/// Counts the items of one program and says when they are hostile. There is one at a time.
class ledger {
 public:
  ledger() noexcept;
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  /// Every `every`-th destruction of an item that was not moved from calls `trap`, at most `times`.
  void set_trap(int every, int times, std::function<void()> trap);
  /// The `moves`-th copy or move from now on throws boom(99).
  void set_fuse(int moves) noexcept { fuse_ = moves; }
  void disarm() noexcept;

  long alive() const noexcept { return alive_; }
  long destroyed_twice() const noexcept { return destroyed_twice_; }
  bool burnt() const noexcept { return burnt_; }
  /// Something hostile has happened, so that items may be missing.
  bool disturbed() const noexcept { return burnt_ || sprung_ > 0; }

 private:
  friend class item;
  void moved();
  void destroyed(bool had_value) noexcept;

  long alive_ = 0;
  long destroyed_twice_ = 0;
  int fuse_ = 0;
  int every_ = 0;
  int until_trap_ = 0;
  int times_ = 0;
  int sprung_ = 0;
  bool burnt_ = false;
  bool in_trap_ = false;
  std::function<void()> trap_;
};

class item {
 public:
  explicit item(int number);
  item(const item& other);
  item(item&& other);  // may throw
  item& operator=(const item& other);
  item& operator=(item&& other);
  ~item();

  /// -1 if it was moved from.
  int value() const noexcept { return value_; }
  friend bool operator==(const item& a, const item& b) noexcept { return a.value_ == b.value_; }

 private:
  int value_;
  std::uint32_t mark_;
};

}  // namespace fuzz

template <>
struct std::hash<fuzz::item> {
  std::size_t operator()(const fuzz::item& i) const noexcept {
    return static_cast<std::size_t>(i.value());
  }
};
