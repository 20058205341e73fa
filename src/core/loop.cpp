// SPDX-License-Identifier: MIT
#include "core/loop.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <weir/detail/wait.hpp>
#include <weir/time.hpp>

#include "core/dump_tree.hpp"
#include "core/fatal.hpp"
#include "core/region.hpp"

namespace weir::detail {

constinit thread_local loop* current_loop = nullptr;

namespace {

constexpr int production_budget = 256;
constexpr int turn_limit = 64;
constexpr auto spin_limit = std::chrono::microseconds(20);
constexpr unsigned spin_after_messages = 16;  // turns during which spinning is worth it

}  // namespace

loop& require_fiber(const char* what) {
  if (current == nullptr) raise_no_current_fiber(what);
  return *current_loop;
}

loop::loop(environment& env, std::string name)
    : env_(env), choices_(env.choices()), budget_(choices_ == nullptr ? production_budget : 0) {
  door_ = door_table::add(std::move(name), !env.hears_threads(), index_);
  serial_ = door_->serial();
}

// First nobody finds the door any more, then it closes, then what came too late is refused: whoever
// is refused and looks again sees that the loop is gone.
loop::~loop() {
  door_table::remove(index_);
  *put_off_end_ = door_->messages.close();
  for (message* refused = put_off_; refused != nullptr;) {
    message* following = refused->next;
    refused->refuse();
    refused = following;
  }
}

void loop::run(scope& root_scope, fiber& root) {
  root_scope_ = &root_scope;
  root_ = &root;
  while (!root.ended) {
    run_ready();
    if (root.ended) break;
    take_inbox();
    request_stops();
    look_at_signals();
    look_at_late_answers();
    env_.between_turns(*this);
    fire_timers();
    if (nothing_ready()) park();
  }
  request_stops();
}

strand* loop::take_ready() noexcept {
  strand* before = nullptr;
  strand* taken = head_;
  if (choices_ != nullptr && ready_ > 1) {
    for (std::size_t skip = choices_->choose(ready_); skip > 0; --skip) {
      before = taken;
      taken = taken->next;
    }
  }
  (before == nullptr ? head_ : before->next) = taken->next;
  if (tail_ == taken) tail_ = before;
  --ready_;
  return taken;
}

void loop::run_ready() {
  for (int i = 0; i < turn_limit && head_ != nullptr; ++i) {
    if (env_.count_step()) give_up(ending::livelock, "livelock");
    if (!stops_.empty()) request_stops();  // before the strands that were cancelled are unwound
    run_strand(*take_ready());
  }
  now_read_ = false;
}

void loop::take_inbox() noexcept {
  *put_off_end_ = door_->messages.take();
  message* next = std::exchange(put_off_, nullptr);
  put_off_end_ = &put_off_;
  if (recent_messages_ > 0) --recent_messages_;
  if (next != nullptr) recent_messages_ = spin_after_messages;
  while (next != nullptr) {
    message* m = next;
    next = m->next;
    m->deliver(*this);
  }
}

bool loop::spin_for_messages() noexcept {
  static const bool several_cores = std::thread::hardware_concurrency() > 1;
  if (!several_cores || recent_messages_ == 0) return false;
  const auto until = std::chrono::steady_clock::now() + spin_limit;
  while (std::chrono::steady_clock::now() < until)
    if (door_->messages.has_messages()) return true;
  return false;
}

void loop::fire_timers() noexcept {
  if (timers_.size() == 0 && deadlines_.size() == 0) return;
  const time_point pass = now();
  while (timer_node* due = timers_.pop_due(ticks(pass))) {
    door_->timers.add(-1);
    fire_sleep(*due);
  }
  // A deadline waits until what else happened at its instant has run: for an empty ready queue at
  // the same time, or (on a clock that moves by itself) for the next pass.
  if (nothing_ready() || pass > last_pass_) {
    while (timer_node* due = deadlines_.pop_due(ticks(last_pass_))) {
      auto& deadline = *static_cast<deadline_node*>(due);
      if (deadline.counted) door_->timers.add(-1);
      deadline.expired();
    }
  }
  last_pass_ = pass;
}

void loop::request_stops() noexcept {
  while (!stops_.empty()) {
    std::stop_source source = std::move(stops_.back());
    stops_.pop_back();
    source.request_stop();
  }
}

void loop::arm_timer(timer_node& node, std::uint64_t when) noexcept {
  timers_.arm(node, when);
  door_->timers.add(1);
}
void loop::cancel_timer(timer_node& node) noexcept {
  timers_.cancel(node);
  door_->timers.add(-1);
}
void loop::arm_deadline(deadline_node& node, time_point when, std::uint32_t order) noexcept {
  node.order = order;
  deadlines_.arm(node, ticks(when));
  door_->timers.add(1);
}
void loop::cancel_deadline(deadline_node& node) noexcept {
  deadlines_.cancel(node);
  if (node.counted) door_->timers.add(-1);
}
void loop::arm_watch(deadline_node& node, time_point when) noexcept {
  node.counted = false;
  node.order = next_order();
  deadlines_.arm(node, ticks(when));
}

bool loop::can_wake() const noexcept {
  if (!env_.hears_threads()) return false;
  return !suspends_.empty() || tokens_.can_fire() ||
         door_->kept_alive.load(std::memory_order_acquire) > 0;
}

time_point loop::next_timer() const noexcept {
  const std::uint64_t next = std::min(timers_.next_look(), deadlines_.next_look());
  if (next >= ticks(time_point::max())) return time_point::max();
  return time_point(duration(static_cast<std::int64_t>(next)));
}

void loop::look_at_late_answers() noexcept {
  const std::uint64_t late = door_->late.load(std::memory_order_relaxed);
  if (late == late_seen_) return;
  emit("late", "suspend", late - late_seen_);
  late_seen_ = late;
}

void loop::park() {
  if (timers_.size() + deadlines_.size() == 0 && !root_overdue_at_) {
    if (!can_wake() && !door_->messages.has_messages() && put_off_ == nullptr)
      return give_up(ending::deadlock, "deadlock");
    env_.park(*this, std::nullopt);
  } else {
    time_point until = next_timer();
    if (root_overdue_at_) until = std::min(until, *root_overdue_at_);
    env_.park(*this, until);
  }
  now_read_ = false;
}

// Nothing can ever go on (or too much goes on): everything is cancelled at once, without grace.
void loop::give_up(ending how, const char* message) {
  if (ending_ != ending::normal) {
    if (how == ending::livelock || suspends_.abandon_all()) return;
    fatal(std::string(message) + " while everything was being cancelled: a wait refuses to end");
  }
  ending_ = how;
  tree_ = dump_of(*this);
  cancel_reason why(how == ending::deadlock ? cancel_kind::shutdown : cancel_kind::evicted,
                    message);
  why.source = root_scope_->id();
  why.when = now();
  region::cancel(*root_scope_, make_reason(std::move(why)), true);
}

void loop::look_at_signals() {
  if (root_overdue_at_ && now() >= *root_overdue_at_) root_overdue();
  if (!handles_signals_) return;
  const int interrupts = door_->interrupts.load(std::memory_order_acquire);
  const int dumps = door_->dump_requests.load(std::memory_order_acquire);
  if (dumps != dumps_seen_) {
    dumps_seen_ = dumps;
    std::fputs(dump_of(*this).c_str(), stderr);
  }
  if (interrupts != interrupts_seen_) {
    const bool first = interrupts_seen_ == 0;
    interrupts_seen_ = interrupts;
    cancel_reason why(cancel_kind::signal, "interrupted by a signal");
    why.source = root_scope_->id();
    why.when = now();
    region::cancel(*root_scope_, make_reason(std::move(why)), !first || interrupts > 1);
    root_overdue_at_ = !first || interrupts > 1 ? now() : saturating_add(now(), root_grace_);
  }
}

// The grace of the root is over. First everything that still runs is forced to end; whoever is
// left when nothing is ready any more is named, and the process ends.
void loop::root_overdue() {
  if (!root_is_overdue_) {
    root_is_overdue_ = true;
    cancel_reason why(cancel_kind::signal, "the grace of the program is over");
    why.source = root_scope_->id();
    why.when = now();
    region::cancel(*root_scope_, make_reason(std::move(why)), true);
    return;
  }
  if (!nothing_ready()) return;
  emit("cancel_overdue", root_scope_->name(), 0, root_scope_->id());
  std::fputs("weir: still running after the grace:\n", stderr);
  std::fputs(dump_of(*this).c_str(), stderr);
  std::fflush(stderr);
  if (handles_signals_) std::_Exit(124);
  root_overdue_at_ = std::nullopt;  // told once; it goes on waiting
}

}  // namespace weir::detail
