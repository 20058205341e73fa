// SPDX-License-Identifier: MIT
// What the tests of queues, channels, events and mutexes share: values that are counted or refuse
// to be moved, consumers, and the text of the dump.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "toolkit/toolkit_support.hpp"

namespace weir_test {

using numbers = std::vector<int>;

/// What an accepted value gives.
inline const std::error_code no_error;

inline constexpr weir::overflow overflow_policies[] = {
    weir::overflow::wait,     weir::overflow::drop_oldest, weir::overflow::drop_newest,
    weir::overflow::conflate, weir::overflow::disconnect,  weir::overflow::fail_emitter};

/// A value that cannot be copied and is counted while it is somebody's, not when moved from.
class counted_value {
 public:
  counted_value(int value, int& alive) : n(value), alive_(&alive) { ++alive; }
  counted_value(counted_value&& other) noexcept
      : n(other.n), alive_(std::exchange(other.alive_, nullptr)) {}
  counted_value& operator=(counted_value other) noexcept {
    std::swap(n, other.n);
    std::swap(alive_, other.alive_);
    return *this;
  }
  ~counted_value() {
    if (alive_ != nullptr) --*alive_;
  }
  bool moved_from() const { return alive_ == nullptr; }
  int n;

 private:
  int* alive_;
};

/// Its moves throw boom(n) when the fuse has burnt down; a copy that could not be made is no value.
struct brittle {
  explicit brittle(int value) : n(value) {}
  brittle(const brittle& other) : n(other.n) { burn(n); }
  brittle(brittle&& other) : n(other.n) { burn(n); }
  brittle& operator=(const brittle&) = default;
  brittle& operator=(brittle&&) = default;
  ~brittle() = default;
  int n;

  static inline int fuse = 0;  // the move that throws, counted down; 0: none

 private:
  static void burn(int n) {
    if (fuse > 0 && --fuse == 0) throw boom(n);
  }
};

inline std::string dump_text() {
  std::ostringstream out;
  weir::dump(out);
  return out.str();
}

/// Takes values until the end.
template <class Source>
task<> take_all(Source& from, numbers& into) {
  for (;;) {
    auto v = co_await from.next();
    if (!v) co_return;
    into.push_back(*v);
  }
}

/// Takes one value; -1 at the end.
template <class Source>
task<int> take_one(Source& from) {
  auto v = co_await from.next();
  co_return v ? *v : -1;
}

/// Takes one value into a list, -1 at the end; nothing if it fails or is cancelled.
template <class Source>
task<> take_into(Source& from, numbers& into) {
  int v = co_await take_one(from);
  into.push_back(v);
}

/// What can be taken at once.
template <class Source>
numbers drain(Source& from) {
  numbers all;
  while (auto v = from.try_next()) all.push_back(*v);
  return all;
}

/// Pushes, and says so in a list when the value was accepted.
inline task<> push_one(weir::queue<int>& q, int value, numbers& accepted) {
  co_await q.push(value);
  accepted.push_back(value);
}

inline numbers from_to(int first, int last) {
  numbers all;
  for (int i = first; i <= last; ++i) all.push_back(i);
  return all;
}

inline long counted_in(const numbers& all, int value) {
  return static_cast<long>(std::count(all.begin(), all.end(), value));
}

inline numbers sorted(numbers all) {
  std::sort(all.begin(), all.end());
  return all;
}

/// A step of virtual time: all messages have arrived, and everybody has done what can be done.
inline auto settled() { return weir::sleep(1ms); }

inline task<> send_all(weir::sender<int> tx, int first, int last) {
  for (int i = first; i <= last; ++i) co_await tx.send(i);
}

inline task<std::error_code> code_of_send(weir::sender<int> tx, int value) {
  auto make = [&] { return tx.send(value); };
  co_return co_await code_after(make);
}

inline task<> emit_one(weir::broadcast<int>& b, int value, numbers& accepted) {
  co_await b.emit(value);
  accepted.push_back(value);
}

}  // namespace weir_test
