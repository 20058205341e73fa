// SPDX-License-Identifier: MIT
// What the tests of governors share.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "support/test_support.hpp"

namespace flow_test {

using namespace test_support;
using weir::errc;
using weir::task;

/// Runs `body` once, on virtual time.
template <class F>
void simulate(F body) {
  weir::sim::run({.seed = 1}, std::move(body));
}

/// Milliseconds of the loop's time.
inline long now_ms() {
  return static_cast<long>(
      std::chrono::duration_cast<std::chrono::milliseconds>(weir::now().time_since_epoch())
          .count());
}

/// Takes a permit, says so in the log, and keeps it for `d`.
template <class G>
task<> user(G& g, text_log& log, std::string name, weir::duration d) {
  auto permit = co_await g.acquire();
  log.push_back(std::move(name));
  co_await weir::sleep(d);
}

/// The error code that making something ends with.
template <class F>
std::error_code refused(F make) {
  return code_of(thrown_by(std::move(make)));
}

}  // namespace flow_test
