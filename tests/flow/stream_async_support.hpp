// SPDX-License-Identifier: MIT
// What the tests of concurrent streams share: a source and work that say what happened to them.
// Types are erased, so that each operator is compiled once per file.
#pragma once

#include <functional>
#include <utility>

#include "flow_support.hpp"

namespace weir_test {

using int_stream = weir::any_stream<int>;
using worker = std::function<task<int>(int)>;

/// What happened to a source and to the work on its items.
struct plant {
  int pulled = 0;
  int opened = 0;
  int closed = 0;
  int running = 0;
  int most = 0;  // running at once
  int begun = 0;
  int ended = 0;  // to their end, not cancelled

  bool quiet() const { return running == 0 && opened == closed; }
};

/// Counts up while it lives, and counts another thing when it ends.
class presence {
 public:
  presence(int& now, int& after) : now_(now), after_(after) { ++now; }
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;
  ~presence() {
    --now_;
    ++after_;
  }

 private:
  int& now_;
  int& after_;
};

/// 1, 2, ... `last`; fails with boom(99) instead of the item `fails_at`.
inline weir::stream<int> items(plant& p, int last, weir::duration every = {}, int fails_at = 0) {
  ++p.opened;
  int open = 0;
  const presence using_it(open, p.closed);
  for (int i = 1; i <= last; ++i) {
    if (every > weir::duration::zero()) co_await weir::sleep(every);
    if (i == fails_at) throw boom(99);
    ++p.pulled;
    co_yield i;
  }
}

/// Counts itself in `p` while it runs.
inline task<int> counted_work(plant& p, weir::duration length, int value) {
  int done = 0;
  const presence working(p.running, done);
  ++p.begun;
  p.most = std::max(p.most, p.running);
  co_await weir::sleep(length);
  ++p.ended;
  co_return value;
}

/// Each item takes `length` and comes back times ten.
inline worker times_ten(plant& p, weir::duration length = 10ms) {
  return [&p, length](int i) { return counted_work(p, length, i * 10); };
}

/// The item `bad` fails with boom(bad) after `soon`; the others are as those of times_ten.
inline worker fails_at(plant& p, int bad, weir::duration soon, weir::duration length = 10ms) {
  return [&p, bad, soon, length](int i) {
    return i == bad ? fails_after(soon, bad) : counted_work(p, length, i * 10);
  };
}

inline int_stream mapped(int_stream source, weir::counting_governor& g, worker fn) {
  return std::move(source) | weir::map_async(g, std::move(fn));
}

inline int_stream unordered(int_stream source, weir::counting_governor& g, worker fn) {
  return std::move(source) | weir::map_async_unordered(g, std::move(fn));
}

using maker = int_stream (*)(int_stream, weir::counting_governor&, worker);

inline numbers tens(int first, int last) {
  numbers all;
  for (int i = first; i <= last; ++i) all.push_back(i * 10);
  return all;
}

/// Takes values until the end or an error, which it gives.
template <class Source>
task<std::exception_ptr> take_until_error(Source& from, numbers& into) {
  co_return co_await error_of(take_all(from, into));
}

}  // namespace weir_test
