// SPDX-License-Identifier: MIT
// Sources that tests of combinators mix: journaled ones are promises that a sibling resolves (waits
// without a fiber), and sleeps and steps; routines are children.
#pragma once

#include <string>

#include "durable/support/crashes.hpp"

namespace durable_test {

/// A journaled wait: the promise of this name.
inline auto promised(const std::string& name) {
  auto p = weir::promise<int>(name);
  return p.wait();
}

inline task<> resolve_after(weir::duration d, std::string name, int value) {
  co_await weir::sleep(d);
  auto p = weir::promise<int>(name);
  (void)co_await p.resolve(value);
}

inline task<> reject_after(weir::duration d, std::string name, std::string what) {
  co_await weir::sleep(d);
  auto p = weir::promise<int>(name);
  (void)co_await p.reject(what);
}

/// Runs `body` beside children that resolve promises, in one scope.
template <class Body>
task<std::string> in_scope(Body body) {
  co_return co_await weir::with_scope(
      [&](weir::scope& s) -> task<std::string> { co_return co_await body(s); });
}

/// What an op ends with: its value, or "!" and the part if the error says it.
template <class Op>
task<std::string> value_or(Op op, std::string part) {
  try {
    co_return std::to_string(co_await std::move(op));
  } catch (const weir::error_group& e) {
    std::string all = "group:";
    for (const auto& one : e.errors()) {
      const std::string what = test_support::what_of(one);
      all += " " + what.substr(0, what.find(' '));
    }
    co_return all;
  } catch (const weir::terminal_error& e) {
    co_return "!" + said(e, part);
  }
}

inline std::string outcome_text(const weir::outcome<int>& o, const std::string& part) {
  if (o.is_value()) return std::to_string(o.value());
  if (o.is_cancelled()) return "cancelled";
  return test_support::contains(test_support::what_of(o.error()), part)
             ? "!" + part
             : test_support::what_of(o.error());
}

}  // namespace durable_test
