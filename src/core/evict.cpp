// SPDX-License-Identifier: MIT
// Crash of a loop: destroys its frames, without any other effect.
#include <utility>
#include <vector>

#include <weir/detail/core/wait.hpp>

#include "core/cancel_tree.hpp"
#include "core/dump_tree.hpp"
#include "core/fiber_end.hpp"
#include "core/loop.hpp"

namespace weir::detail {

namespace {

void destroy_frames(fiber& f) noexcept {
  current = &f;
  f.destroying = true;
  while (frame* leaf = f.leaf) {
    frame* parent = leaf->parent;
    leaf->out->forget_frame();
    leaf->handle().destroy();
    f.leaf = parent;
  }
  cancel_tree::delete_entries(f);
  f.drop_operation();
  f.destroying = false;
  current = nullptr;
}

}  // namespace

// Waits are withdrawn first, so that no source of waits is destroyed while a wait is linked to it.
// Then frames are destroyed, children before parents, because scopes live in their parents' frames.
void loop::evict(const reason_ref& why) {
  dead_ = true;
  strand* const running = std::exchange(current, nullptr);  // of the loop that crashes this one
  {
    const active_loop active(*this);
    const bool was_crashing = std::exchange(crashing, true);
    const std::vector<fiber*> all = fibers_of(*this);
    for (fiber* f : all) {
      f->retain();
      cancel_tree::mark_evicted(*f, why);
    }
    for (fiber* f : all)
      if (f->parked != nullptr && !f->needs_start) (void)f->parked->withdraw();
    for (std::size_t i = all.size(); i-- > 0;) {
      fiber& f = *all[i];
      destroy_frames(f);
      f.parked = nullptr;
      if (f.result().is_value()) f.drop_value();  // it was about to run its defers
      f.result().set_cancelled(why);
      f.ended = true;
      door_->fibers.add(-1);
      cancel_tree::child_ended(cancel_tree::scope_of(f), f, f.result());
    }
    for (fiber* f : all) f->release();
    crashing = was_crashing;
  }
  head_ = nullptr;
  end_ = &head_;
  current = running;
  close();  // undelivered messages still belong to their senders, which are alive
}

}  // namespace weir::detail
