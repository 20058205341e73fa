// SPDX-License-Identifier: MIT
#include "core/loop.hpp"

#include <cstdio>
#include <cstdlib>

#include <weir/detail/core/wait.hpp>
#include <weir/time.hpp>

#include "core/cancel_tree.hpp"
#include "core/deadlock.hpp"
#include "core/dump_tree.hpp"
#include "core/fatal.hpp"
#include "core/signals.hpp"

namespace weir::detail {

loop& require_fiber(const char* what) {
  if (current == nullptr || current_loop == nullptr) raise_no_current_fiber(what);
  return *current_loop;
}

loop::loop(environment& env, std::string name)
    : env_(env),
      budget_(env.budget()),
      full_budget_(budget_),
      depth_first_(!env.simulated()),
      turn_limit_(env.turn_limit()),
      outer_(std::make_unique<outer_part>()),
      events_(&outer_->events) {
  door_ = door_table::add(std::move(name), env.simulated(), env.clock(), index_);
  serial_ = door_->serial();
}

loop::loop(environment& env, loop& host, run_seam& seam)
    : env_(env),
      budget_(env.budget()),
      full_budget_(budget_),
      turn_limit_(env.turn_limit()),
      index_(host.index_),
      door_(host.door_),
      events_(host.events_),
      seam_(&seam),
      host_(&host) {
  serial_ = door_table::add_inner(door_);
  previous_inner_ = host.outer_->last_inner;
  (host.outer_->last_inner == nullptr ? host.outer_->first_inner
                                      : host.outer_->last_inner->next_inner_) = this;
  host.outer_->last_inner = this;
}

// Order matters: the door leaves the table, then it closes, then late messages are refused. So a
// refused sender that looks the loop up again finds that it is gone.
void loop::close() noexcept {
  if (std::exchange(closed_, true)) return;
  if (host_ != nullptr) {
    (previous_inner_ == nullptr ? host_->outer_->first_inner : previous_inner_->next_inner_) =
        next_inner_;
    (next_inner_ == nullptr ? host_->outer_->last_inner : next_inner_->previous_inner_) =
        previous_inner_;
    return door_table::remove_inner(serial_);
  }
  door_table::remove(index_);
  *outer_->put_off_end = door_->messages.close();
  for (message* refused = outer_->put_off; refused != nullptr;) {
    message* following = refused->next;
    refused->refuse();
    refused = following;
  }
}

loop::~loop() {
  close();
  while (strays_ != nullptr) free_stray(*strays_);
}

// The number of strands after which a busy loop looks at its I/O: a system call each time.
constexpr std::uint64_t io_interval = 64;

void loop::run() {
  while (!finished()) {
    run_ready();
    if (finished()) break;
    look_outside();
    if (nothing_ready()) park();
  }
  request_stops();
}

void loop::turn() {
  run_ready();
  look_outside();
}

// The rest of a turn: messages, I/O, signals and timers.
inline void loop::look_outside() {
  take_inbox();
  if (outer_->parker != nullptr && steps_ - outer_->steps_at_io >= io_interval) [[unlikely]]
    look_at_io();
  request_stops();
  look_around(nothing_ready());
  env_.between_turns(*this);
  fire_timers();
}

void loop::sleep(std::int64_t nanoseconds) noexcept {
  door_->sleep(nanoseconds, outer_->parker.get());
  if (outer_->parker != nullptr) look_at_io();
}

bool loop::look_at_io() noexcept {
  if (outer_->parker == nullptr) return false;
  outer_->steps_at_io = steps_;
  return outer_->parker->deliver();
}

void loop::look_around(bool idle) {
  look_at_signals(idle);
  look_at_late_answers();
  events_->drop_old_errors();
}

void loop::collect_messages() noexcept {
  *outer_->put_off_end = door_->messages.take();
  while (*outer_->put_off_end != nullptr) outer_->put_off_end = &(*outer_->put_off_end)->next;
}

bool loop::deliver_one() noexcept {
  collect_messages();
  message* oldest = outer_->put_off;
  if (oldest == nullptr) return false;
  outer_->put_off = oldest->next;
  if (outer_->put_off == nullptr) outer_->put_off_end = &outer_->put_off;
  oldest->deliver(*this);
  return true;
}

void loop::take_inbox() noexcept {
  *outer_->put_off_end = door_->messages.take();
  message* next = std::exchange(outer_->put_off, nullptr);
  outer_->put_off_end = &outer_->put_off;
  if (next != nullptr) had_messages_ = true;
  while (next != nullptr) {
    message* m = next;
    next = m->next;
    m->deliver(*this);
  }
}

bool loop::spin_for_messages() noexcept {
  if (!had_messages_) return false;
  had_messages_ = outer_->spins.spin([this] { return door_->messages.has_messages(); });
  return had_messages_;
}

bool loop::fire_timers(chooser* order) noexcept {
  if (outer_->timers.size() + outer_->deadlines.size() == 0) return false;
  bool fired = false;
  const time_point pass = now();
  while (timer_node* due = outer_->timers.pop_due(ticks(pass), order)) {
    door_->timers.add(-1);
    fired = true;
    fire_sleep(*due);
  }
  // A deadline fires after everything else of its instant has run: when the ready queue is empty at
  // that time, or (on a clock that moves by itself) in the next pass.
  if (nothing_ready() || pass > outer_->last_pass) {
    while (timer_node* due = outer_->deadlines.pop_due(ticks(outer_->last_pass))) {
      auto& deadline = *static_cast<deadline_node*>(due);
      if (deadline.counted) door_->timers.add(-1);
      fired = true;
      deadline.expired();
    }
  }
  outer_->last_pass = pass;
  // A deadline may cancel a fiber that goes on waiting, perhaps for what only a stop callback can
  // end: nothing is ready then, and the loop would park before its next turn.
  if (!stops_.empty()) request_stops();
  return fired;
}

void loop::request_stops() noexcept {
  while (!stops_.empty()) {
    std::stop_source source = std::move(stops_.back());
    stops_.pop_back();
    source.request_stop();
  }
}

void loop::arm_timer(timer_node& node, std::uint64_t when) noexcept {
  if (seam_ != nullptr) return seam_->arm_timer(node, when, false);
  outer_->timers.arm(node, when);
  door_->timers.add(1);
}
void loop::cancel_timer(timer_node& node) noexcept {
  if (seam_ != nullptr) return seam_->cancel_timer(node);
  outer_->timers.cancel(node);
  door_->timers.add(-1);
}
void loop::arm_deadline(deadline_node& node, time_point when, std::uint32_t order) noexcept {
  node.order = order;
  if (seam_ != nullptr) return seam_->arm_timer(node, ticks(when), true);
  outer_->deadlines.arm(node, ticks(when));
  door_->timers.add(1);
}
void loop::cancel_deadline(deadline_node& node) noexcept {
  if (seam_ != nullptr) return seam_->cancel_timer(node);
  outer_->deadlines.cancel(node);
  if (node.counted) door_->timers.add(-1);
}
void loop::arm_watch(deadline_node& node, time_point when) noexcept {
  if (seam_ != nullptr) return;  // it only reports, and would be a command of the run
  node.counted = false;
  node.order = next_order();
  outer_->deadlines.arm(node, ticks(when));
}

bool loop::can_wake() const noexcept {
  return serves_ || answers_due_ > 0 || !suspends_.empty() || tokens_.can_fire() ||
         door_->kept_alive.load(std::memory_order_acquire) > 0;
}

time_point loop::next_timer() const noexcept {
  const std::uint64_t next = std::min(outer_->timers.next_look(), outer_->deadlines.next_look());
  if (next >= ticks(time_point::max())) return time_point::max();
  return time_point(duration(static_cast<std::int64_t>(next)));
}

void loop::look_at_late_answers() noexcept {
  const std::uint64_t late = door_->late.load(std::memory_order_relaxed);
  if (late == outer_->late_seen) return;
  emit("late", "suspend", late - outer_->late_seen);
  outer_->late_seen = late;
}

void loop::park() {
  if (outer_->timers.size() + outer_->deadlines.size() == 0 && !outer_->root_overdue_at) {
    if (!can_wake() && !has_messages()) return give_up();
    env_.park(*this, std::nullopt);
  } else {
    env_.park(*this, next_look());
  }
  now_read_ = false;
}

// Nothing can wake this loop: a deadlock.
void loop::give_up() {
  if (!outer_->deadlock.empty()) {
    if (suspends_.abandon_all()) return;
    fatal("deadlock while everything was being cancelled: a wait refuses to end");
  }
  loop* const stuck[] = {this};
  outer_->deadlock = deadlock_text(stuck);
  cancel_everything("deadlock", true);
}

bool loop::finished() {
  if (!root_->ended) return false;
  if (cancel_tree::first_child(*root_scope_) == nullptr)
    return true;  // counts stream children, too
  if (!std::exchange(ending_, true)) cancel_everything("the loop has ended", false);
  return false;
}

void loop::cancel_everything(const char* message, bool force) {
  cancel_root({cancel_kind::shutdown, message}, force);
}

void loop::cancel_root(cancel_reason why, bool force) {
  cancel_tree::cancel(*root_scope_, make_reason(std::move(why), root_scope_->id(), now()), force);
}

void loop::look_at_signals(bool idle) {
  if (outer_->root_overdue_at && now() >= *outer_->root_overdue_at) root_overdue(idle);
  if (!handles_signals_) return;
  const int interrupts = door_->interrupts.load(std::memory_order_acquire);
  if (signal_watch::take_dump_request()) std::fputs(dump_all().c_str(), stderr);
  if (interrupts != outer_->interrupts_seen) {
    const bool first = outer_->interrupts_seen == 0;
    outer_->interrupts_seen = interrupts;
    cancel_root({cancel_kind::signal, "interrupted by a signal"}, !first || interrupts > 1);
    outer_->root_overdue_at =
        !first || interrupts > 1 ? now() : saturating_add(now(), outer_->root_grace);
  }
}

// The root's grace is over. First forces everything to end; if fibers are left when nothing is
// ready any more, prints them, and ends the process if the loop handles signals.
void loop::root_overdue(bool idle) {
  if (!root_is_overdue_) {
    root_is_overdue_ = true;
    return cancel_root({cancel_kind::signal, "the grace of the program is over"}, true);
  }
  if (!idle) return;
  emit("cancel_overdue", root_scope_->name(), 0, root_scope_->id());
  std::fputs("weir: still running after the grace:\n", stderr);
  std::fputs((handles_signals_ ? dump_all() : dump_of(*this)).c_str(), stderr);
  std::fflush(stderr);
  if (handles_signals_) std::_Exit(124);
  outer_->root_overdue_at = std::nullopt;  // reported once; keeps waiting
}

}  // namespace weir::detail
