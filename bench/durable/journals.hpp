// SPDX-License-Identifier: MIT
//
// Journals for the recovery to read, written by an engine that does not sync, with 64 runs at any
// time, so that the records of different runs are mixed.
#pragma once

#include <weir/durable.hpp>
#include <weir/weir.hpp>

#include <cstdint>
#include <string>

namespace bench {

/// Does steps and then, if it shall not end, sleeps for longer than any benchmark.
struct stepper {
  int steps;
  bool ends;
  std::int64_t* arrived;  // runs that have done their steps

  weir::task<int> operator()(int input) const {
    int sum = input;
    for (int i = 0; i < steps; ++i) sum += co_await weir::step("add", [i] { return i; });
    ++*arrived;
    if (!ends) co_await weir::sleep(std::chrono::hours(24));
    co_return sum;
  }
};

inline weir::durable::engine_options without_sync(const std::string& path) {
  return {.path = path, .sync = weir::durable::sync::never_for_tests, .max_live = 1'000'000};
}

struct to_start {
  weir::durable::engine& engine;
  std::int64_t left;
  bool ends;
};

inline weir::task<> start_some(to_start& all) {
  while (all.left-- > 0) {
    const auto run = co_await all.engine.start<int>("stepper", {}, 1);
    if (all.ends) co_await run.result();
  }
}

/// `runs` of `steps` each: 2 + 2 * steps records, or as many if they do not end (a sleep in place
/// of the end).
inline weir::task<> write_journal(std::string path, std::int64_t runs, int steps, bool ends) {
  std::int64_t arrived = 0;
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add("stepper", stepper{steps, ends, &arrived});
    co_await e.open();
    to_start all{e, runs, ends};
    co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
      for (int i = 0; i < 64; ++i) s.spawn(start_some(all));
      co_return;
    });
    while (arrived < runs) co_await weir::sleep(std::chrono::milliseconds(1));
  };
  co_await weir::durable::with_engine(without_sync(path), body);
}

}  // namespace bench
