// SPDX-License-Identifier: MIT
// What the tests of "items' destructors may use the container they came from" share: an item that
// does something when it is destroyed, and lists of what it does. ASan is the judge; the tests
// count what is alive.
#pragma once

#include <functional>
#include <utility>

namespace weir_test {

/// Does something when it is destroyed. It is copied where others are moved, so that everything
/// that is left behind does the same.
class hostile {
 public:
  explicit hostile(int value = 0, const std::function<void()>* act = nullptr) noexcept
      : n(value), act_(act) {
    ++alive;
  }
  explicit hostile(const std::function<void()>* act) noexcept : hostile(0, act) {}
  hostile(const hostile& other) noexcept : n(other.n), act_(other.act_) { ++alive; }
  hostile& operator=(const hostile& other) noexcept = default;
  ~hostile() {
    --alive;
    if (act_ == nullptr || !*act_ || depth == 3) return;
    ++depth;
    (*act_)();
    --depth;
  }
  friend bool operator==(const hostile& a, const hostile& b) { return a.n == b.n; }
  int n;

  static inline int alive = 0;

 private:
  static inline int depth = 0;
  const std::function<void()>* act_;
};

/// One of the things that a destructor does to what its item came from.
template <class Container>
struct deed {
  const char* name;
  std::function<void(Container&)> does;
};

}  // namespace weir_test
