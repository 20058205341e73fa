// SPDX-License-Identifier: MIT
#include <weir/detail/pump.hpp>

#include <weir/detail/dump_line.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

namespace {

/// Whose the work of a stream is: the innermost with_scope, child or root around the running code.
struct stream_owner {
  scope& in;
  fiber* child;  // of that scope; null: the work is that of its body
};

// The arms of a combinator are no children: what they began goes on after them.
bool is_child(const context& c) noexcept {
  return region::kind(c) == region_kind::fiber &&
         region::kind(*region::parent(c)) == region_kind::scope;
}

stream_owner owner_here() {
  context* c = current->top;
  while (region::kind(*c) != region_kind::scope && !is_child(*c)) c = region::parent(*c);
  if (!is_child(*c)) return {static_cast<scope&>(*c), nullptr};
  return {static_cast<scope&>(*region::parent(*c)), static_cast<fiber*>(c)};
}

}  // namespace

void pump_base::start(task<> work, begun when) {
  require_fiber("a concurrent stream");
  stream_owner owner = owner_here();
  // Who builds a stream need not be the one who pulls it: then the scope has it. But a service goes
  // on when the others in its scope have ended.
  if (when == begun::ahead && owner.child != nullptr && !owner.child->background)
    owner.child = nullptr;
  fiber* made = scope::make(std::move(work));
  made->isolated = true;
  made->observed = true;  // its errors go to the stream
  made->hidden = true;
  child_ = core_ref::adopt(
      owner.in.adopt(made, {.name = "stream"}, std::source_location::current(),
                     owner.child == nullptr ? scope::launch::hidden : scope::launch::background,
                     nullptr, owner.child));
}

void pump_base::cancel() noexcept {
  if (!started() || ended() || in_dead_world()) return;
  cancel_reason why(cancel_kind::abandoned, "the stream was closed");
  if (const reason_ref consumer = region::why_destroying()) why = *consumer;
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
