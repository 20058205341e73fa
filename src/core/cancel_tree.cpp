// SPDX-License-Identifier: MIT
#include "core/cancel_tree.hpp"

#include <weir/detail/core/generator.hpp>
#include <weir/detail/core/region_await.hpp>
#include <weir/local.hpp>

#include "core/fatal.hpp"
#include "core/generator_carrier.hpp"

namespace weir::detail {

void enter_region(context& c) { cancel_tree::enter(*current, c); }
void leave_region(context& c) noexcept { cancel_tree::leave(*current, c); }

scope& cancel_tree::scope_of(context& c) noexcept {
  context* at = &c;
  while (is_base(*at)) at = at->parent_;
  return static_cast<scope&>(*at);
}

// Links its pullers, too, so that a walk from above finds everything inside.
void cancel_tree::link_generator(generator_base& g) noexcept {
  generator_base* at = &g;
  while (!std::exchange(at->linked_, true)) {
    context& consumer = *at->parent_;
    at->beside = std::exchange(consumer.inner_, static_cast<context*>(at));
    if (consumer.kind_ != region_kind::stream) return;
    at = &static_cast<generator_base&>(consumer);
  }
}

void cancel_tree::unlink_generator(generator_base& g) noexcept {
  generator_base* at = &g;
  while (std::exchange(at->linked_, false)) {
    context& consumer = *at->parent_;
    context** place = &consumer.inner_;
    while (*place != at) place = &static_cast<generator_base*>(*place)->beside;
    *place = std::exchange(at->beside, nullptr);
    if (consumer.kind_ != region_kind::stream || consumer.inner_ != nullptr) return;
    at = &static_cast<generator_base&>(consumer);
    if (at->is_in_flight()) return;
  }
}

context& cancel_tree::consumer_of(const generator_base& g) noexcept { return *g.parent_; }

void cancel_tree::mark_evicted(generator_base& g, const reason_ref& why) noexcept {
  g.reason_ = why;
}

void cancel_tree::move_generator(generator_base& g, context& to) noexcept {
  unlink_generator(g);
  g.parent_ = &to;
  link_generator(g);
}

// The innermost scope around the pull, or something that ends earlier and is joined by it. A child
// of a scope owns the children of its stages, but not a generator in flight, which others may pull
// next; only the root, services and stream pumps do. Arms of combinators own nothing: what they
// began outlives them. A generator in flight may use a local, so with_local owns it. A defer of a
// scope owns the children that it starts, for the scope has joined its own.
context& cancel_tree::owner_of(stream_part part, context& c) noexcept {
  const bool flies = part == stream_part::flight;
  for (context* at = &c;; at = at->parent_) {
    if (at->kind_ == region_kind::scope || (flies && at->kind_ == region_kind::local)) return *at;
    if (!flies && at->kind_ == region_kind::cleanup && at->parent_->kind_ == region_kind::scope)
      return *at;
    if (at->kind_ != region_kind::fiber) continue;
    const context& around = *at->parent_;
    if (!flies) {
      if (around.kind_ == region_kind::scope) return *at;
      continue;
    }
    const auto& f = static_cast<const fiber&>(*at);
    const bool is_root = &around == loop::here()->root_scope();
    const bool is_pump = f.hidden && around.kind_ != region_kind::arms;
    if (is_root || is_pump || (f.background && !f.carries)) return *at;
  }
}

void cancel_tree::add_carrier(context& owner, generator_carrier& c) {
  c.parent_ = &owner;
  owner.own(&c);
}

void cancel_tree::interrupt(generator_base& g, const reason_ref& why) {
  if (mark(g, why, false)) spread(g, false);
}

void cancel_tree::interrupt_when_confirmed(generator_base& g, const reason_ref& why) {
  mark(g, why, false);
  if (g.parked == nullptr) {
    g.unwinding = true;  // it confirmed inside the call, and is ready
  } else {
    g.unwind_when_done = true;
  }
}

reason_ref cancel_tree::why_given_up(const composite& pull) {
  const strand* consumer = pull.waiting_strand();
  if (consumer->top->reason_) return consumer->top->reason_;
  return make_reason(cancel_reason(cancel_kind::user, "a pending next() was cancelled"));
}

// Sinks close their stream behind a shield, in the cleanup of a region: the reason is that of this
// region.
reason_ref cancel_tree::why_destroying() noexcept {
  if (current == nullptr) return {};
  const context* c = current->top;
  if (current->destroying) return c->reason_;
  if (c->kind_ == region_kind::shield) c = c->parent_;
  if (c->kind_ == region_kind::cleanup && c->parent_->kind_ == region_kind::settle) c = c->parent_;
  return c->reason_;
}

// A generator that is destroyed without a cancelled consumer gets its reason on demand.
const reason_ref& cancel_tree::unwinding(const strand& s) noexcept {
  context* c = s.top;
  while (!c->reason_ && !is_base(*c)) c = c->parent_;
  if (!c->reason_ && c->kind_ == region_kind::stream)
    c->reason_ = make_reason(cancel_reason(cancel_kind::abandoned, "the stream was abandoned"));
  return c->reason_;
}

duration cancel_tree::grace_around(const context& c) noexcept {
  const context* at = &c;
  while (at->kind_ != region_kind::scope) at = at->parent_;
  return static_cast<const scope*>(at)->grace_;
}

fiber* cancel_tree::fiber_of(const context& c) noexcept {
  const context* at = &c;
  while (at != nullptr && at->kind_ != region_kind::fiber) at = at->parent_;
  return const_cast<fiber*>(static_cast<const fiber*>(at));
}

void cancel_tree::enter(strand& s, context& c) {
  context& outer = *s.top;
  c.parent_ = &outer;
  c.forced_ = outer.forced_;
  c.entered_ = true;
  auto& entered = static_cast<scope&>(c);
  entered.strand_ = &s;
  entered.locals_ = scope_of(outer).locals_;
  if (c.kind_ == region_kind::local) {
    binding& bound = static_cast<local_region_base&>(entered).bound;
    bound.outer = std::exchange(entered.locals_, &bound);
  }
  if (c.kind_ == region_kind::cleanup && outer.forced_) {
    // The grace is over: the remaining cleanup is still started, but must not wait.
    c.reason_ = outer.reason_ ? outer.reason_ : make_reason(cancel_kind::timeout);
    c.lenient_ = true;
    s.budget = 1;
  } else if (outer.reason_ && (!c.shield_ || outer.forced_)) {
    c.reason_ = c.kind_ == region_kind::scope
                    ? nested_reason(outer.reason_, entered.id_, entered.name(), loop::here()->now())
                    : outer.reason_;
    c.lenient_ = outer.lenient_;
  } else if (outer.reason_) {
    s.budget = 1;  // inside a shield awaits continue, but soon give up the turn
  }
  outer.inner_ = &c;
  if (outer.kind_ == region_kind::stream) link_generator(static_cast<generator_base&>(outer));
  s.top = &c;
  if (c.kind_ == region_kind::shield && outer.reason_ && !outer.forced_)
    static_cast<limited_region&>(entered).start_shield_limit();
}

void cancel_tree::leave(strand& s, context& c) noexcept {
  if (!c.entered_) return;
  c.entered_ = false;
  context& outer = *c.parent_;
  outer.inner_ = nullptr;
  if (outer.kind_ == region_kind::stream) {
    auto& g = static_cast<generator_base&>(outer);
    if (!g.is_in_flight()) unlink_generator(g);
  }
  s.top = &outer;
  if (outer.reason_ && !outer.lenient_ && s.budget > 0) s.budget = 0;
}

void cancel_tree::notify_stop_source(context& c) {
  for (entry* e = c.entries_; e != nullptr; e = e->below) {
    if (e->what == entry::kind::stop) {
      (void)e->run(outcome_view(outcome<void>()));
      return;
    }
  }
}

// Reports when the children of a cancelled scope outlast its grace.
void cancel_tree::watch(scope& s) noexcept {
  if (s.live_ == 0 || s.watch_.armed() || s.grace_ == duration::max()) return;
  s.loop_->arm_watch(s.watch_, saturating_add(s.loop_->now(), s.grace_));
}

bool cancel_tree::mark(context& c, const reason_ref& why, bool force) {
  if (c.kind_ == region_kind::fiber && static_cast<fiber&>(c).ended) return false;
  if (c.reason_ && (!force || (c.forced_ && !c.lenient_))) return false;
  c.forced_ = c.forced_ || force;
  c.lenient_ = false;
  if (c.reason_) return true;  // the first reason wins; only the force is new
  if (c.kind_ == region_kind::stream) {
    auto& g = static_cast<generator_base&>(c);
    g.note_interrupted(g.needs_start ? nullptr : g.parked);
  }
  c.reason_ = why;
  if (c.entries_ != nullptr) notify_stop_source(c);
  if (c.kind_ == region_kind::scope) watch(static_cast<scope&>(c));
  return true;
}

bool cancel_tree::mark_below(context& c, bool force) {
  // A result that arrived before the cancellation is kept for the next pull.
  if (c.kind_ == region_kind::stream && !force && static_cast<generator_base&>(c).stop_in_flight())
    return false;
  if (c.shield_ && !force) {
    if (c.kind_ == region_kind::shield)
      static_cast<limited_region&>(static_cast<scope&>(c)).start_shield_limit();
    if (c.kind_ == region_kind::scope && static_cast<scope&>(c).guided_)
      static_cast<guided_scope&>(static_cast<scope&>(c)).asked_to_end();
    return false;
  }
  if (c.kind_ != region_kind::scope) return mark(c, c.parent_->reason_, force);
  if (c.reason_) return mark(c, c.reason_, force);
  auto& s = static_cast<scope&>(c);
  return mark(c, nested_reason(c.parent_->reason_, s.id_, s.name(), s.loop_->now()), force);
}

context* cancel_tree::first_below(context& c) noexcept {
  if (!is_base(c)) {
    if (fiber* f = static_cast<scope&>(c).first_) return f;
  }
  return c.inner_;
}

context* cancel_tree::next_after(context& c) noexcept {
  if (c.kind_ == region_kind::stream) return static_cast<generator_base&>(c).beside;
  if (c.kind_ != region_kind::fiber) return nullptr;
  if (fiber* f = static_cast<fiber&>(c).following) return f;
  return c.parent_->inner_;
}

void cancel_tree::ask(context& c) {
  strand* s = c.kind_ == region_kind::fiber    ? static_cast<fiber*>(&c)
              : c.kind_ == region_kind::stream ? static_cast<generator_base*>(&c)
                                               : static_cast<scope&>(c).strand_;
  if (s == nullptr || s->top != &c || s->unwinding) return;
  if (s->budget > 0) s->budget = 0;
  if (s->parked == nullptr || s == current) return;  // running: cancel_if_asked, or its next await
  if (s->needs_start) {
    s->needs_start = false;
    s->parked = nullptr;
    s->unwinding = true;  // it is in the ready queue already
    return;
  }
  if (withdraw_parked(*s)) loop::here()->push(*s);
}

// True: the strand must be unwound and is not queued yet.
bool cancel_tree::withdraw_parked(strand& s) noexcept {
  switch (s.parked->withdraw()) {
    case cancel_result::done:
      s.parked = nullptr;
      s.unwinding = true;
      return true;
    case cancel_result::later:
      // If it confirmed inside the call, the strand is ready.
      if (s.parked == nullptr) {
        s.unwinding = true;
      } else {
        s.unwind_when_done = true;
      }
      return false;
    case cancel_result::no:
      return false;
  }
  return false;
}

void cancel_tree::cancel(context& root, const reason_ref& why, bool force) {
  const bool first = !root.reason_;
  if (!mark(root, why, force)) return;
  if (first)
    loop::here()->emit("cancel", root.name(), static_cast<std::uint64_t>(why->kind),
                       root.scope_id());
  spread(root, force);
}

void cancel_tree::cancel_children(scope& s, const reason_ref& why) {
  s.loop_->emit("cancel", s.name(), static_cast<std::uint64_t>(why->kind), s.id_);
  watch(s);
  for (fiber* f = s.first_; f != nullptr; f = f->following)
    if (mark(*f, why, false)) spread(*f, false);
}

// Walks the tree without recursion and without a stack: down to the first child, then to the next
// sibling, then to the body's region, then up.
void cancel_tree::spread(context& root, bool force) {
  context* at = &root;
  bool down = true;
  for (;;) {
    if (down) {
      if (context* below = first_below(*at)) {
        at = below;
        down = mark_below(*at, force);
        continue;
      }
      ask(*at);
    }
    if (at == &root) return;
    if (context* next = next_after(*at)) {
      at = next;
      down = mark_below(*at, force);
      continue;
    }
    context* outer = at->parent_;
    if (is_base(*at)) ask(*outer);  // the body comes last
    at = outer;
    down = false;
  }
}

// The innermost cancelled scope around the strand's frames that still has children.
scope* cancel_tree::unjoined(strand& s) noexcept {
  for (context* c = s.top; c != nullptr && c->reason_ && !is_base(*c); c = c->parent_) {
    auto& around = static_cast<scope&>(*c);
    if (around.joined_for_good_) return nullptr;
    if (around.live_ > 0) return &around;
    if (c->shield_) break;
  }
  // All of them are empty and stay empty: remember it, so that deep nests are walked only once.
  for (context* c = s.top; c != nullptr && c->reason_ && !is_base(*c); c = c->parent_) {
    static_cast<scope&>(*c).joined_for_good_ = true;
    if (c->shield_) break;
  }
  return nullptr;
}

bool cancel_tree::unwind(strand& s) {
  if (scope* busy = unjoined(s)) {
    busy->held_ = &s;
    return false;
  }
  s.unwinding = false;
  while (frame* leaf = s.leaf) {
    outcome_base* out = leaf->out;
    frame* parent = leaf->parent;
    const bool edge = out->is_catch_edge();
    out->forget_frame();
    s.destroying = true;
    leaf->handle().destroy();
    s.destroying = false;
    s.leaf = parent;
    if (edge) {
      out->set_cancelled(s.top->reason_);
      break;
    }
  }
  return true;
}

void cancel_tree::arm_deadlines(strand& s) noexcept {
  if (!s.unarmed_deadlines) return;
  s.unarmed_deadlines = false;
  for (context* c = s.top; c != nullptr && !is_base(*c); c = c->parent_) {
    if (c->kind_ != region_kind::timeout && c->kind_ != region_kind::shield &&
        c->kind_ != region_kind::cleanup)
      continue;
    auto& limited = static_cast<limited_region&>(static_cast<scope&>(*c));
    if (limited.armed()) return;
    if (limited.has_deadline && !limited.fired) limited.arm();
  }
}

void cancel_tree::expire_passed(strand& s) {
  const time_point now = loop::here()->fresh_now();
  limited_region* outermost = nullptr;
  for (context* c = s.top; c != nullptr; c = c->parent_) {
    if (c->kind_ == region_kind::timeout) {
      auto& limited = static_cast<limited_region&>(static_cast<scope&>(*c));
      if (limited.has_deadline && !limited.fired && limited.at <= now) outermost = &limited;
    }
    if (c->shield_) break;
  }
  if (outermost == nullptr) return;
  if (outermost->armed()) loop::here()->cancel_deadline(*outermost);
  outermost->expired();
}

limited_region::~limited_region() {
  if (armed()) loop::here()->cancel_deadline(*this);
}

void limited_region::set_deadline(time_point limit, cancel_kind kind) {
  at = limit;
  has_deadline = true;
  fires_as = kind;
  order_of_entry = loop::here()->next_order();
}

void limited_region::start_shield_limit() {
  if (!shield_limit || has_deadline) return;
  const reason_ref& outer = cancel_tree::reason(*cancel_tree::parent(*this));
  set_deadline(saturating_add(outer->when, *shield_limit), cancel_kind::timeout);
  arm();
}

void limited_region::arm() noexcept { loop::here()->arm_deadline(*this, at, order_of_entry); }

void limited_region::expired() noexcept {
  fired = true;
  if (!cancel_requested()) ended_by_it = true;
  cancel_tree::cancel(*this, make_reason(fires_as, id(), loop::here()->now()),
                      cancel_tree::kind(*this) == region_kind::shield);
}

}  // namespace weir::detail
