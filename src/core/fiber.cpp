// SPDX-License-Identifier: MIT
#include <weir/detail/core/fiber.hpp>
#include <weir/future.hpp>

#include <weir/detail/core/dump_line.hpp>

#include <weir/detail/core/region_await.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "core/cancel_tree.hpp"
#include "core/cleanup.hpp"
#include "core/error.hpp"
#include "core/error_notes.hpp"
#include "core/fatal.hpp"
#include "core/fiber_end.hpp"
#include "core/loop.hpp"

namespace weir::detail {

void fiber::describe(dump_line& line) const { line.add("future").add_name(name ? name : ""); }

void fiber::note_observed() noexcept {
  observed = true;
  if (unobserved) cancel_tree::remove_unobserved(*this);
}

bool fiber::awaited_by_user() const noexcept {
  if (waiters == nullptr) return false;
  const bool being_stopped = background && registration == nullptr;
  return !being_stopped || !waiters->is_only_one();
}

void future_core::describe(dump_line& line) const { line.add("future"); }

void future_core::wake_waiters() noexcept {
  while (future_wait* first = waiters) {
    first->unlink();
    first->complete();
  }
}

// ------------------------------------------------------------------ waiting for a future

void future_wait::arm() noexcept {
  future_core& core = *core_.get();
  if (core.done()) return complete();  // settled by another arm of the same composite
  if (core.waiters == nullptr) {
    core.waiters = previous_ = next_ = this;
    return;
  }
  next_ = core.waiters;
  previous_ = next_->previous_;
  previous_->next_ = next_->previous_ = this;
}

void future_wait::unlink() noexcept {
  future_core& core = *core_.get();
  if (next_ == this) {
    core.waiters = nullptr;
  } else {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    if (core.waiters == this) core.waiters = next_;
  }
  previous_ = next_ = nullptr;
}

cancel_result future_wait::withdraw() noexcept {
  unlink();
  return cancel_result::done;
}

void future_wait::describe(dump_line& line) const { core_.get()->describe(line); }

void future_wait::blockers(blocker_list& list) const {
  if (const fiber* f = core_.get()->runner()) list.fibers.push_back(f);
}

void raise_empty_future() {
  raise(errc::invalid_argument, "empty future: it was default-constructed or moved from");
}

void require_future_home(const future_core& core) {
  if (core.home == current_loop_serial()) [[likely]]
    return;
  const door_ref home = door_table::find_serial(core.home);
  if (home == nullptr) return;  // its loop has ended: any thread may read it
  require_same_run(core.home, "a future");
  raise(errc::wrong_loop, "future of loop '" + home->name() + "' used on " + running_loop_text() +
                              "; a future never leaves its loop");
}

void check_foreign_release(const future_core& core) noexcept {
  const door_ref home = door_table::find_serial(core.home);
  if (home == nullptr || home->thread == std::this_thread::get_id()) return;
  fatal("future of loop '" + home->name() +
        "' destroyed on another thread while its loop runs; a future never leaves its loop");
}

void cancel_fiber(fiber& f, cancel_reason reason) {
  if (f.ended || cancel_tree::reason(f)) return;
  const scope_id owner = cancel_tree::scope_of(f).id();
  cancel_tree::cancel(f, make_reason(std::move(reason), owner, loop::here()->now()), false);
}

// ------------------------------------------------------------------ the end of a fiber

namespace {

/// The bottom entry of a fiber while its defers run; owns the frame that runs them.
struct cleanup_entry final : entry {
  cleanup_entry() : entry(kind::bottom) {}
  outcome<void> out;
};

task<> run_fiber_cleanup(fiber& f) {
  std::vector<std::exception_ptr> errors;
  co_await quietly(pop_entries(f, f.result(), errors));
  if (errors.empty()) co_return;
  if (f.result().is_value()) {
    f.drop_value();
    f.result().set_error(errors.front());
  }
  f.result().notes().cleanup = std::move(errors);
}

// REQUIRES: it has entries.
void begin_cleanup(fiber& f) {
  entry*& top = cancel_tree::entries(f);
  auto* bottom = new cleanup_entry;
  entry* lowest = top;
  while (lowest->below != nullptr) lowest = lowest->below;
  lowest->below = bottom;
  bottom->above = lowest;
  bottom->out.own_frame(run_fiber_cleanup(f).release());
  frame& root = frame_of(bottom->out.frame());
  root.out = &bottom->out;
  f.leaf = &root;
}

}  // namespace

bool fiber_ended(fiber& f) {
  if (cancel_tree::entries(f) != nullptr) [[unlikely]] {
    if (!f.cleaning) {
      f.cleaning = true;
      begin_cleanup(f);
      return true;
    }
    cancel_tree::delete_entries(f);
  }
  const outcome_base& result = f.result();
  if (result.is_error()) [[unlikely]]
    note_fiber(result.error(), f);
  f.drop_operation();
  f.ended = true;
  loop::here()->own_door().fibers.add(-1);
  if (current_run != nullptr) [[unlikely]]
    current_run->fiber_ended(f);
  if (f.driven) static_cast<driven_fiber&>(f).finished();
  cancel_tree::child_ended(cancel_tree::scope_of(f), f, result);
  return false;
}

}  // namespace weir::detail
