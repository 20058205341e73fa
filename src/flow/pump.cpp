// SPDX-License-Identifier: MIT
#include <weir/detail/flow/pump.hpp>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

void pump_base::start(task<> work, begun when) {
  require_fiber("a concurrent stream");
  context& owner = cancel_tree::owner_of(stream_part::child, *current->top);
  const region_kind kind = cancel_tree::kind(owner);
  fiber* worker = kind == region_kind::fiber ? static_cast<fiber*>(&owner) : nullptr;
  scope& in = cancel_tree::scope_of(owner);
  // The fiber that builds a stream need not be the one that pulls it, so the scope owns the child.
  // A service owns it itself, because it outlives the ordinary children of its scope, and so does
  // a defer.
  if (when == begun::ahead && worker != nullptr && !worker->background) worker = nullptr;
  const bool served = worker != nullptr || kind == region_kind::cleanup;
  fiber* made = scope::make(std::move(work));
  made->isolated = true;
  made->observed = true;  // its errors go to the stream
  made->hidden = true;
  child_ = core_ref::adopt(in.adopt(made, {.name = "stream"}, std::source_location::current(),
                                    served ? scope::launch::background : scope::launch::hidden,
                                    nullptr, worker));
}

void pump_base::cancel() noexcept {
  if (!started() || ended() || in_dead_world()) return;
  cancel_reason why(cancel_kind::abandoned, "the stream was closed");
  if (const reason_ref consumer = cancel_tree::why_destroying()) why = *consumer;
  cancel_fiber(static_cast<fiber&>(*child_.get()), std::move(why));
}

void pump_base::raise_pump_cancelled() {
  raise(errc::stream_interrupted,
        "the child that pulled the stream was cancelled: the child or scope in which the stream "
        "was first pulled has ended");
}

task<> pump_base::join() const { return wait_until_settled(child_); }

void describe_pump_stage(dump_line& line) { line.add("the child of a stream"); }

}  // namespace weir::detail
