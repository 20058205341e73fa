// SPDX-License-Identifier: MIT
#include <weir/detail/pump.hpp>

#include <weir/detail/dump_line.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

namespace {

/// The innermost with_scope or root around the running code.
scope& owning_scope() {
  context* c = current->top;
  while (region::kind(*c) != region_kind::scope) c = region::parent(*c);
  return static_cast<scope&>(*c);
}

}  // namespace

void pump_base::start(task<> work) {
  require_fiber("a concurrent stream");
  fiber* made = scope::make(std::move(work));
  made->isolated = true;
  made->observed = true;  // its errors go to the stream
  child_ = core_ref::adopt(owning_scope().adopt(
      made, {.name = "stream"}, std::source_location::current(), scope::launch::hidden));
}

void pump_base::cancel() noexcept {
  if (!started() || ended() || in_dead_world()) return;
  cancel_reason why(cancel_kind::abandoned, "the stream was closed");
  if (const reason_ref consumer = region::why_destroying()) why = *consumer;
  cancel_fiber(static_cast<fiber&>(*child_.get()), std::move(why));
}

void pump_base::raise_pump_cancelled() {
  raise(errc::stream_interrupted,
        "the child that pulled the stream was cancelled: the scope in which the stream was first "
        "pulled has ended");
}

task<> pump_base::join() const { return wait_until_settled(child_); }

void describe_pump_stage(dump_line& line) { line.add("the child of a stream"); }

}  // namespace weir::detail
