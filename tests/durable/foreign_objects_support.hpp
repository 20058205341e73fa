// SPDX-License-Identifier: MIT
// What the tests of foreign objects share: runs on a journal in a directory of their own, and the
// refusal of an operation as a word.
#pragma once

#include <weir/durable.hpp>

#include "durable/support/temporary_directory.hpp"
#include "support/test_support.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace weir_test {

using namespace test_support;
namespace durable = weir::durable;
using weir::errc;
using weir::task;

inline durable::engine_options engine_in(const temporary_directory& place) {
  return {.path = place.path(), .sync = durable::sync::never_for_tests, .segment_bytes = 64 * 1024};
}

/// One life of an engine that knows `handler` as "h"; `use` ends it.
template <class H, class U>
task<> life_in(const temporary_directory& place, H handler, U use) {
  auto body = [&](durable::engine& e) -> task<> {
    e.add("h", handler);
    co_await e.open();
    co_await use(e);
  };
  co_await durable::with_engine(engine_in(place), body);
}

/// How a run of `handler`, a `task<std::string>()`, ends.
template <class H>
task<std::string> result_of(H handler) {
  const temporary_directory place;
  std::string end;
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"});
    end = co_await run.result();
  };
  co_await life_in(place, handler, use);
  co_return end;
}

/// The same, when the engine is ended after each of `lives` and opened again.
template <class H, class... Lengths>
task<std::string> result_over(H handler, Lengths... lives) {
  const temporary_directory place;
  std::string end;
  const weir::duration lengths[] = {lives...};
  for (const weir::duration length : lengths) {
    auto use = [&](durable::engine& e) -> task<> {
      (void)co_await e.start<std::string>("h", {.id = "r"});
      co_await weir::sleep(length);
    };
    co_await life_in(place, handler, use);
  }
  auto use = [&](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"});
    end = co_await run.result();
  };
  co_await life_in(place, handler, use);
  co_return end;
}

/// "refused" for errc::not_journaled with a place in `file`.
inline std::string refusal(const std::exception_ptr& error, std::string_view file) {
  if (error == nullptr) return "allowed";
  if (code_of(error) != errc::not_journaled) return "other: " + what_of(error);
  return contains(what_of(error), file) ? "refused" : "without a place: " + what_of(error);
}

/// Runs a `task<>()` in a simulation.
template <class F>
void simulated(F f) {
  (void)weir::sim::run({.seed = 1}, f);
}

}  // namespace weir_test
