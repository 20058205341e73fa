// SPDX-License-Identifier: MIT
// Cancel regions: how a cancellation spreads down the tree, and how a strand is unwound.
//
// The tree: a fiber's region lies in its scope; inside a fiber (or another strand) regions are
// nested like the awaits that entered them, and `strand::top` is the innermost one.
//
// Invariants:
// 1. A region is cancelled iff it has a reason. Every region inside a cancelled one is cancelled
//    too, unless a shield lies between them that has not been forced open.
// 2. Frames of a strand belong to the region that was on top when they were started; they are
//    unwound only while that region is cancelled.
// 3. Body last: frames that run inside a cancelled scope are unwound only when that scope has no
//    children left. A cancelled scope accepts no new ones, so this is decided once.
#pragma once

#include <cstdint>

#include <weir/context.hpp>
#include <weir/detail/core/fiber.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/scope.hpp>

#include "core/loop.hpp"

namespace weir::detail {

struct generator_carrier;

/// Parts of a stream that have an owner of their own.
enum class stream_part : std::uint8_t {
  child,   // the child of a concurrent stage, which works for its consumer
  flight,  // begun by one pull, possibly needed by the next one elsewhere
};

struct cancel_tree {
  static bool cancelled(const strand& s) noexcept { return s.top->reason_ && !s.top->lenient_; }
  static bool may_not_park(const strand& s) noexcept { return static_cast<bool>(s.top->reason_); }
  static const reason_ref& reason(const context& c) noexcept { return c.reason_; }
  static context* parent(const context& c) noexcept { return c.parent_; }
  static context* inner(const context& c) noexcept { return c.inner_; }
  static region_kind kind(const context& c) noexcept { return c.kind_; }
  static bool forced(const context& c) noexcept { return c.forced_; }
  static bool entered(const context& c) noexcept { return c.entered_; }
  /// Whether `c` is cancelled with its surroundings.
  static bool cancelled_above(const context& c) noexcept {
    return c.parent_ != nullptr && c.parent_->reason_ && !c.parent_->lenient_;
  }
  static void make_shield(context& c) noexcept { c.shield_ = true; }
  /// A region that was left, and is as new otherwise, is used for something else.
  static void renew(scope& s) noexcept { s.id_ = s.loop_->next_scope_id(); }

  static void enter(strand& s, context& c);
  static void leave(strand& s, context& c) noexcept;
  /// Cancels `root` and everything in it. The first reason wins; `force` opens shields.
  static void cancel(context& root, const reason_ref& why, bool force);
  /// Cancels the children of `s`, but neither its body nor its services.
  static void cancel_children(scope& s, const reason_ref& why);
  /// Tries to withdraw the wait of the strand of `c`, if `c` is its innermost region.
  static void ask(context& c);
  static bool withdraw_parked(strand& s) noexcept;
  /// Destroys frames up to the next catch edge. False: the strand is held (see invariant 3).
  static bool unwind(strand& s);
  /// Arms the timers of all time limits that the strand entered since it last gave up its turn.
  static void arm_deadlines(strand& s) noexcept;
  /// A crash: `why` replaces every reason in the fiber.
  static void mark_evicted(fiber& f, const reason_ref& why) noexcept {
    for (context* c = &f; c != nullptr; c = c->inner_) c->reason_ = why;
  }
  /// Fires every deadline around the running strand that has passed; for `checkpoint`.
  static void expire_passed(strand& s);

  /// The nearest scope around `c`, or `c` itself if it is one.
  static scope& scope_of(context& c) noexcept;
  /// The same for a child, which usually lies directly in its scope.
  static scope& scope_of(fiber& f) noexcept {
    context& around = *f.parent_;
    return is_base(around) ? scope_of(around) : static_cast<scope&>(around);
  }
  static const scope& scope_of(const context& c) noexcept {
    return scope_of(const_cast<context&>(c));
  }
  static fiber* fiber_of(const context& c) noexcept;
  /// Whether `c` is the outermost region of a strand, which is not a scope.
  static bool is_base(const context& c) noexcept {
    return c.kind_ == region_kind::fiber || c.kind_ == region_kind::stream;
  }
  /// The trail of the nearest driven fiber around `c`, or the one that a remote operation carries.
  static trail_ref trail_around(context& c);
  /// The key of the local with which a remote operation carries its caller's trail.
  static constexpr char trail_key = 0;
  /// Cancels a generator that cannot be paused: it is unwound, and notifies its pull when done.
  static void interrupt(generator_base& g, const reason_ref& why);
  /// The same for a generator whose wait answered `later`.
  static void interrupt_when_confirmed(generator_base& g, const reason_ref& why);
  /// Why a pull was given up: the reason of its consumer, if that is cancelled.
  static reason_ref why_given_up(const composite& pull);
  /// The reason for the destruction that the running code performs; null if there is none.
  static reason_ref why_destroying() noexcept;
  /// Why the frames of a strand are destroyed. REQUIRES: they are being destroyed.
  static const reason_ref& unwinding(const strand& s) noexcept;
  /// The owner of a stream's part that is pulled in `c`: the part is joined when its owner ends.
  static context& owner_of(stream_part part, context& c) noexcept;
  /// Makes a carrier a service of `owner`.
  static void add_carrier(context& owner, generator_carrier& c);
  /// Moves a generator from its consumer's region into `to`.
  static void move_generator(generator_base& g, context& to) noexcept;
  static void unlink_generator(generator_base& g) noexcept;
  static context& consumer_of(const generator_base& g) noexcept;
  /// A crash: replaces every reason.
  static void mark_evicted(generator_base& g, const reason_ref& why) noexcept;

  /// The error that `s` reports in place of `error`: `error` itself, or that of a supervisor in `s`
  /// that gave up and so made an agent refuse; the refusal is then suppressed.
  static std::exception_ptr cause_of(scope& s, const std::exception_ptr& error,
                                     std::string_view who);

  // Children of a scope.
  static void add_child(scope& s, fiber& f) noexcept {
    f.previous = s.last_;
    (s.last_ == nullptr ? s.first_ : s.last_->following) = &f;
    s.last_ = &f;
    ++s.live_;
    if (f.hidden) ++s.hidden_;
  }
  static void remove_child(scope& s, fiber& f) noexcept {
    (f.previous == nullptr ? s.first_ : f.previous->following) = f.following;
    (f.following == nullptr ? s.last_ : f.following->previous) = f.previous;
    f.previous = f.following = nullptr;
    --s.live_;
    if (f.hidden) --s.hidden_;
  }
  /// `result` is that of the fiber.
  static void child_ended(scope& s, fiber& f, const outcome_base& result);
  static void child_ended_badly(scope& s, fiber& f, const outcome_base& result);
  static void drained(scope& s) noexcept;
  /// Cancels the children that work for streams.
  static void stop_streams(scope& s) noexcept;

  // Access to a scope's private members.
  static fiber* first_child(const scope& s) noexcept { return s.first_; }
  static entry*& entries(context& c) noexcept { return c.entries_; }
  static loop& loop_of(const scope& s) noexcept { return *s.loop_; }
  static strand* body_strand(const scope& s) noexcept { return s.strand_; }
  static binding*& locals(scope& s) noexcept { return s.locals_; }
  /// The grace of the nearest with_scope (or root) around `c`.
  static duration grace_around(const context& c) noexcept;
  static failures& problems(scope& s) {
    if (s.failures_ == nullptr) s.failures_ = std::make_unique<failures>();
    return *s.failures_;
  }
  static failures* problems_or_null(const scope& s) noexcept { return s.failures_.get(); }
  static void fail(scope& s, const std::exception_ptr& error, std::string_view who);
  /// Keeps an error to be raised at the end of `s`, or as suppressed if it comes too late.
  static void keep_error(scope& s, const std::exception_ptr& error, std::string_view who);
  /// The reason with which the siblings of a failure are cancelled.
  static cancel_reason blame(const std::exception_ptr& error, std::string_view who);
  /// `why`, with `s` as its source.
  static reason_ref signed_by(const scope& s, cancel_reason why);
  /// Whether the running code belongs to a child of `s` (not to its body).
  static bool runs_in_child_of(const scope& s) noexcept;
  static void unlink_entry(context& c, entry& e) noexcept;
  static void delete_entries(context& c) noexcept;
  static void force(context& c) noexcept { c.forced_ = true; }
  static void remove_unobserved(fiber& f) noexcept;
  static task<> end(scope& s, outcome_base& out);
  static verdict judge(scope& s, outcome_base& out);
  static void note_body_end(scope& s) noexcept { s.body_end_ = s.loop_->steps(); }

 private:
  friend class weir::scope;
  friend struct overdue_watch;
  friend class join_wait;
  static bool mark(context& c, const reason_ref& why, bool force);
  static bool mark_below(context& c, bool force);
  static void spread(context& root, bool force);
  static void only_streams_left(scope& s) noexcept;
  static void child_failed(scope& s, fiber& f);
  static void ended_late(scope& s, const fiber& f);
  static void remove_service(fiber& f) noexcept;
  static void add_unobserved(scope& s, fiber& f) noexcept;
  static void notify_stop_source(context& c);
  static void watch(scope& s) noexcept;
  static void link_generator(generator_base& g) noexcept;
  static context* first_below(context& c) noexcept;
  static context* next_after(context& c) noexcept;
  static scope* unjoined(strand& s) noexcept;
  static void collect_unobserved(scope& s);
  static std::exception_ptr raised_error(scope& s);
};

/// The region around a running defer or the join of a service; ends both when the grace is over.
struct grace_region final : limited_region {
  grace_region(context& of, time_point end);
  void expired() noexcept override;
  context& owner;
  fiber* joining = nullptr;
  cancel_kind ends_as = cancel_kind::timeout;
};

/// A service's entry in the LIFO stack of its scope, or of the child that it works for.
struct background_entry final : entry {
  background_entry(fiber& f, context& in, polite_service* asked)
      : entry(kind::background), of(&f), holder(in), asked_by(asked) {}
  fiber* service() noexcept override { return of; }
  polite_service* polite() noexcept override { return asked_by; }
  fiber* of;
  context& holder;
  polite_service* asked_by;
};

/// Whether the scope already has this error; copies of one group are the same error.
bool is_raised(const failures& f, const std::exception_ptr& error);

}  // namespace weir::detail
