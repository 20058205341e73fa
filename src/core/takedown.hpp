// SPDX-License-Identifier: MIT
// A supervisor that gives up takes its agents down, and their callers are refused, perhaps long
// before run() has ended. So that a scope with both of them reports the cause and not the refusal,
// each refusal refers to a record of the supervisor's run: where it runs, and why it gave up.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <weir/cancel_reason.hpp>

namespace weir {
class scope;
namespace detail {

/// A scope around a run; `remote`: on another loop, the innermost one around the operation that
/// waits for it.
struct run_place {
  std::uint32_t loop;
  scope_id scope;
  bool remote;
};

/// The run of a supervisor. Any thread: `who`, `around` and `outer` do not change once shared.
class takedown {
 public:
  std::string who;
  std::vector<run_place> around;
  std::shared_ptr<takedown> outer;  // the run that contains this nested supervisor

  /// `make` returns the error of run() as an exception of the calling thread.
  void give_up(std::function<std::exception_ptr()> make) {
    const std::lock_guard lock(mutex_);
    make_ = std::move(make);
  }
  /// Null if it has not given up.
  std::exception_ptr cause() const {
    const std::lock_guard lock(mutex_);
    return make_ ? make_() : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::function<std::exception_ptr()> make_;
};

using takedown_ref = std::shared_ptr<takedown>;

/// Whether the run lies in `s`. Call it on the loop of `s`.
bool lies_in(const takedown& run, const scope& s);

}  // namespace detail
}  // namespace weir
