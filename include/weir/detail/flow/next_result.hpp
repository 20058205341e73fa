// SPDX-License-Identifier: MIT
// Part of <weir/stream/next_result.hpp>, which includes it after the declarations it needs.
#pragma once

#include <optional>

#include <weir/policy/deadline.hpp>
#include <weir/stream/stream.hpp>

namespace weir {

namespace detail {

/// A pull under a time limit that reports how it ended.
template <class S>
class next_for_wait : public timed_wait<next_wait_of<S>> {
 public:
  using result = next_result<value_of<S>>;
  using timed_wait<next_wait_of<S>>::timed_wait;
  bool failed() const noexcept {
    return this->broken() || (this->has_result() && this->inner().failed());
  }
  result take() {
    this->rethrow_problem();
    if (!this->has_result()) return result(std::nullopt, true);
    return result(timed_wait<next_wait_of<S>>::take(), false);
  }
};

}  // namespace detail
}  // namespace weir
