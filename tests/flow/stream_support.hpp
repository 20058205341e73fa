// SPDX-License-Identifier: MIT
// What the tests of streams share: sources that count how often they were entered, left and
// advanced, and ways to pull that give a result which can be compared.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flow_support.hpp"
#include "scope/composite_support.hpp"

namespace weir_test {

/// What is known about the runs of a source.
struct probe {
  numbers items;
  weir::duration pause{};  // before each item, and before the end
  int fails_behind = -1;   // so many items, then boom(7)
  int entered = 0;
  int left = 0;
  int given = 0;  // items that it was asked for and had
  int caught = 0;
};

class visit {
 public:
  explicit visit(probe& p) : p_(p) { ++p_.entered; }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  ~visit() { ++p_.left; }

 private:
  probe& p_;
};

/// Gives the items of the probe. A catch block would see a cancellation if that were an exception.
inline weir::stream<int> feed(probe& p) {
  const visit here(p);
  int before = 0;
  try {
    for (const int item : p.items) {
      if (p.pause > weir::duration::zero()) co_await weir::sleep(p.pause);
      if (before++ == p.fails_behind) throw boom(7);
      ++p.given;
      co_yield item;
    }
    if (p.pause > weir::duration::zero()) co_await weir::sleep(p.pause);
  } catch (...) {
    ++p.caught;
    throw;
  }
  if (before == p.fails_behind) throw boom(7);
}

inline weir::stream<int> ticking(weir::duration every, int last) {
  for (int i = 1; i <= last; ++i) {
    co_await weir::sleep(every);
    co_yield i;
  }
}

/// Waits in a scope with a child; the log tells who has ended.
inline weir::stream<int> with_a_child(text_log& log) {
  const end_note left(log, "generator");
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(park(log, "child"));
    co_await weir::sleep(1h);
  });
  co_yield 1;
}

/// The next item, or -1 at the end.
template <class S>
task<int> pull_one(S& from) {
  auto item = co_await from.next();
  co_return item ? *item : -1;
}

/// Everything up to the end, pull by pull.
template <class S>
task<std::vector<typename S::value_type>> pull_all(S& from) {
  std::vector<typename S::value_type> all;
  for (;;) {
    auto item = co_await from.next();
    if (!item) break;
    all.push_back(std::move(*item));
  }
  co_return all;
}

/// The same, but every pull is given up after `patience` and made again.
template <class S>
task<std::vector<typename S::value_type>> pull_all_impatiently(S& from, weir::duration patience,
                                                               int& given_up) {
  std::vector<typename S::value_type> all;
  for (;;) {
    const auto before = given_up;
    try {
      auto item = co_await weir::with_timeout(patience, from.next());
      if (!item) break;
      all.push_back(std::move(*item));
    } catch (const weir::timeout_error&) {
      ++given_up;
    }
    if (before > 10'000) break;
  }
  co_return all;
}

/// The error of one pull, or null.
template <class S>
task<std::exception_ptr> pull_error(S& from) {
  try {
    (void)co_await from.next();
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

inline bool even(int n) { return n % 2 == 0; }

}  // namespace weir_test
