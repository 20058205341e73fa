// SPDX-License-Identifier: MIT
// Shared by the tests of policies: a virtual clock, an operation that fails a given number of
// times, and a record of the events of the running loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/test_support.hpp"

namespace policy_test {

using namespace test_support;
using weir::errc;
using weir::task;

/// Runs `body` once, on virtual time.
template <class F>
void simulate(F body) {
  weir::sim::run({.seed = 1}, std::move(body));
}

/// Milliseconds of the loop's time since it was made.
class stopwatch {
 public:
  long ms() const {
    return static_cast<long>(
        std::chrono::duration_cast<std::chrono::milliseconds>(weir::now() - start_).count());
  }

 private:
  weir::time_point start_ = weir::now();
};

struct told {
  std::string name;
  std::string object;
  std::uint64_t number;
  weir::time_point when;
};

/// The events of the running loop from here on.
class event_record {
 public:
  event_record() : subscription_(weir::on_event(keeper{&all_})) {}

  const std::vector<told>& all() const { return all_; }
  long count(std::string_view name) const { return static_cast<long>(of(name).size()); }
  std::vector<told> of(std::string_view name) const {
    std::vector<told> found;
    for (const told& e : all_)
      if (e.name == name) found.push_back(e);
    return found;
  }
  std::vector<std::uint64_t> numbers(std::string_view name) const {
    std::vector<std::uint64_t> found;
    for (const told& e : of(name)) found.push_back(e.number);
    return found;
  }
  /// The names of these events, in the order in which they were told.
  std::string order_of(const text_log& names) const {
    text_log found;
    for (const told& e : all_)
      if (counted(names, e.name) > 0) found.push_back(e.name);
    return joined(found);
  }

 private:
  struct keeper {
    std::vector<told>* all;
    void operator()(const weir::event_info& e) const {
      all->push_back({std::string(e.name), std::string(e.object), e.number, e.when});
    }
  };
  std::vector<told> all_;
  decltype(weir::on_event(std::declval<keeper>())) subscription_;
};

/// Fails with boom(1), boom(2), ... so many times, then gives the number of the run.
class flaky {
 public:
  explicit flaky(int failures) : failures_(failures) {}
  auto operation() {
    return [this]() -> task<int> {
      times.push_back(weir::now());
      const int run = ++runs;
      if (run <= failures_) throw boom(run);
      co_return run;
    };
  }
  /// The times of the runs in milliseconds, the first one being 0.
  std::vector<long> times_ms() const {
    std::vector<long> all;
    for (weir::time_point t : times)
      all.push_back(static_cast<long>((t - times.front()) / std::chrono::milliseconds(1)));
    return all;
  }
  int runs = 0;
  std::vector<weir::time_point> times;

 private:
  int failures_;
};

/// How one run of an operation ends, in a word.
template <class Op>
task<std::string> verdict(Op& op) {
  std::string word = "value";
  try {
    (void)co_await op();
  } catch (const boom& e) {
    word = "boom " + std::to_string(e.n);
  } catch (const weir::error& e) {
    word = e.code().message();
  } catch (...) {
    word = "something else";
  }
  co_return word;
}

/// The same for operations without a value.
template <class Op>
task<std::string> ending(Op& op) {
  const auto error = co_await error_of(op());
  co_return error == nullptr ? "value" : what_of(error);
}

inline void expect_invalid(const std::exception_ptr& error, std::string_view names) {
  EXPECT_EQ(code_of(error), errc::invalid_argument) << names;
  EXPECT_TRUE(contains(what_of(error), names)) << what_of(error);
}

inline task<int> fails() {
  throw boom(1);
  co_return 0;
}

}  // namespace policy_test
