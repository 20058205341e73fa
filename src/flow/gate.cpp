// SPDX-License-Identifier: MIT
#include <weir/detail/flow/gate.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>
#include <weir/latch.hpp>

#include "core/home.hpp"

namespace weir {

namespace detail {

void gate::settle_home() { home_.settle(self(), "use a channel", false); }

void gate::open() noexcept {
  open_ = true;
  while (!waiters_.empty()) {
    auto& first = static_cast<gate_wait&>(*waiters_.first());
    waiters_.remove(first);
    first.complete();
  }
}

void gate_wait::describe(dump_line& line) const {
  line.add(gate_->kind_).add_name(gate_->name_.view());
}

}  // namespace detail

latch::latch(std::int64_t count, weir::name name)
    : count_(count), gate_("latch", count == 0, name) {
  if (count < 0)
    detail::raise(errc::invalid_argument, detail::text_of(gate_.self()) + ": a count of " +
                                              std::to_string(count) +
                                              " is negative; give 0 or more");
}

void latch::count_down(std::int64_t by) {
  gate_.check();
  if (by < 0 || by > count_)
    detail::raise(errc::invalid_argument, detail::text_of(gate_.self()) + ": counting down by " +
                                              std::to_string(by) + " where " +
                                              std::to_string(count_) + " is left");
  count_ -= by;
  if (count_ == 0 && !gate_.is_open()) gate_.open();
}

}  // namespace weir
