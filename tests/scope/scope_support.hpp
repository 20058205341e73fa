// SPDX-License-Identifier: MIT
// What the tests of scopes and cancellation share beside support/test_support.hpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/test_support.hpp"

namespace weir_test {

using namespace test_support;
using cancel_kind = weir::cancel_kind;

/// The code of the error that the plain call `f()` ends with, an empty code if it throws none.
template <class F>
std::error_code code_thrown_by(F&& f) {
  return code_of(thrown_by(std::forward<F>(f)));
}

inline std::string message_of(const weir::cancel_reason& reason) {
  return std::string(std::string_view(reason.message));
}

inline weir::task<> sleep_for(weir::duration d) { co_await weir::sleep(d); }

/// How a body ends.
enum class body_ending { value, error, cancelled };

/// Parks for ever and says when its frame is destroyed.
inline weir::task<> park(text_log& log, std::string name) {
  end_note ended(log, std::move(name));
  co_await weir::sleep(1000h);
  log.push_back("WENT ON");
}

/// A wait that cannot be cancelled: it ends when somebody calls complete() on what it leaves in
/// `slot`.
inline weir::task<> park_uncancellable(std::optional<weir::resumer<void>>& slot) {
  co_await weir::suspend<void>([&](weir::resumer<void> r) {
    slot.emplace(std::move(r));
    return [] { return weir::cancel_result::no; };
  });
}

inline long free_in(const weir::counting_governor& g) { return static_cast<long>(g.available()); }

inline long queued(const weir::counting_governor& g) { return static_cast<long>(g.waiting()); }

}  // namespace weir_test
