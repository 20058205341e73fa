// SPDX-License-Identifier: MIT
// How agents end: one life, until the next restart, or permanently; and who is notified.
#include <string>

#include <weir/detail/agents/agent_call.hpp>
#include <weir/detail/agents/agent_timer.hpp>
#include <weir/detail/core/dump_line.hpp>
#include <weir/on.hpp>

#include "agents/agent_extra.hpp"
#include "core/cancel_tree.hpp"

namespace weir::detail {

// ------------------------------------------------------------------ stop

struct stop_future;

/// A waiter for the end of a life. The future may outlive its loop, and then a refused answer, so
/// it has a reference besides the one of the reply.
class stop_ticket final : public reply_to<stop_future>,
                          public counted<stop_ticket>,
                          public frame_allocated {
 public:
  stop_ticket() noexcept : counted(2) {}
  void dispose() noexcept override { release(); }
  /// The life has ended.
  void settle() noexcept;
};

/// The future that stop() returns. It settles when the life ends and never fails.
struct stop_future final : future_core {
  explicit stop_future(agent_core& a) : agent(agent_handle::share(&a)) {
    guard();
    retain();
    home = current_loop_serial();
  }
  ~stop_future() {
    if (ticket == nullptr) return;
    ticket->leave();
    ticket->release();
  }
  outcome_base& result() noexcept override { return out; }
  void dispose() noexcept override { delete this; }
  void describe(dump_line& line) const override {
    line.add("the end of agent").add_name(agent->name());
  }
  void check_await() const override {
    if (done() || current == nullptr) return;
    if (const auto cycle = agent->cycle_here(cancel_tree::trail_around(*current->top)))
      std::rethrow_exception(cycle);
  }
  const fiber* runner() const noexcept override {
    return agent->is_here() ? agent->life() : nullptr;
  }
  void answered() noexcept {
    ticket->dispose();
    std::exchange(ticket, nullptr)->release();
    out.emplace();
    settle_now();
  }
  agent_handle agent;
  outcome<void> out;
  stop_ticket* ticket = nullptr;
};

void stop_ticket::settle() noexcept {
  if (!claim()) return dispose();
  answer();
}

future<void> agent_core::stop() {
  auto* const f = new stop_future(*this);
  future<void> given(core_ref::adopt(f));
  loop* const here = loop::here();
  const bool settled = has_home();
  if (crashing || (settled && !may_be_reached())) return given;
  if (here != nullptr) {
    f->ticket = new stop_ticket;
    f->ticket->ask(*f, !is_here());
  }
  stop_ticket* const ticket = f->ticket;
  if (is_next_door()) {
    stop_here(ticket);
    return given;
  }
  if (!revives_) {  // new messages are refused at once; earlier ones arrive before the request
    mail_.announce_stop();
  }
  post_home([ticket](agent_core& a) { a.stop_here(ticket); });
  return given;
}

// It is about to start: on another loop, or under the supervisor that it was added to.
bool agent_core::awaits_life() const noexcept {
  const agent_phase p = cycle_.phase();
  if (is_coming(p) || p == agent_phase::unborn_stopped) return true;
  return (p == agent_phase::unborn || p == agent_phase::between) && supervised_ && has_home() &&
         generation_.load(std::memory_order_relaxed) == 0;
}

void agent_core::stop_here(stop_ticket* ticket) noexcept {
  if (lives_ == nullptr && !awaits_life()) {
    mail_.withdraw_stop();  // there was nothing to stop
    if (ticket != nullptr) ticket->settle();
    return;
  }
  if (ticket != nullptr) need_extra().stops.push_back(ticket);
  const agent_phase before = cycle_.phase();
  if (lives_ != nullptr && !is_serving(before)) return;
  if (cycle_.on(life_event::stop) == before) return;  // it was requested before
  if (!mail_.empty()) need_extra();
  mail_.mark_stop();
  if (!revives_) {
    mail_.close(errc::agent_stopped);
    if (mail_.is_bounded()) flush_line(errc::agent_stopped);
  }
  check_drained();
}

void agent_core::ask_to_end() noexcept {
  if (is_next_door()) return stop_here(nullptr);
  post_home([](agent_core& a) { a.stop_here(nullptr); });
}

void agent_core::cut_short(bool restarts) noexcept {
  at_home([restarts](agent_core& a) {
    const agent_phase p = a.cycle_.phase();
    if (!is_coming(p) && !has_life(p)) return;
    a.cycle_.on(life_event::cut);
    if (!restarts) a.mail_.close(errc::agent_stopped);
    a.wake_all();
  });
}

// Overflow policy `stop`: a full mailbox crashes the agent.
void agent_core::crash_here() noexcept {
  if (lives_ != nullptr) {
    lives_->crash(problem(errc::mailbox_full));
  } else if (is_coming(cycle_.phase())) {
    need_extra().early_crash = true;
  }
}

void agent_core::run_at_home(agent_timer& timer, void (agent_timer::*what)() noexcept) noexcept {
  at_home([&timer, what](agent_core&) { (timer.*what)(); });
}

// ------------------------------------------------------------------ lives

namespace {

/// The scope that owns a life on another loop.
task<> host(agent_handle agent, birth_listener* listener, door_ref listening) {
  scope_options options;
  options.name = "agent";
  auto body = [&](scope& s) -> task<> {
    agent->start_here(s, listener, listening);
    co_return;
  };
  co_await with_scope(options, body);
}

/// A parameter of the stand-in coroutine for a life on another loop. It is destroyed with the
/// coroutine, even one that never ran.
class stand_in_end {
 public:
  explicit stand_in_end(agent_core& a) noexcept : agent_(agent_handle::share(&a)) {}
  stand_in_end(stand_in_end&&) noexcept = default;
  stand_in_end& operator=(stand_in_end&&) = delete;
  ~stand_in_end() {
    if (agent_ && !in_dead_world()) agent_->stand_in_ended();
  }

 private:
  agent_handle agent_;
};

task<> stand_in(agent_handle agent, birth_listener* listener, stand_in_end) {
  const loop_ref there = agent->where();
  const door_ref listening = loop::here()->shared_door();
  auto run = [&] { return host(agent, listener, listening); };
  co_await on(there, run);
}

}  // namespace

std::uint32_t agent_core::fibers_to_begin() const noexcept {
  return !has_extra() || extra().elsewhere ? 1 : extra().lives;
}

fiber* agent_core::begin_life(scope& owner, scope::launch how, birth_listener* listener,
                              std::source_location site) {
  settle_home();
  if (site.line() == 0 && has_extra()) site = extra().site;
  if (has_extra() && extra().elsewhere) {
    at_home([](agent_core& a) { a.life_is_coming(); });
    fiber* const f =
        scope::make(stand_in(agent_handle::share(this), listener, stand_in_end(*this)));
    return owner.adopt(f, {.name = std::string(name())}, site, how, this);
  }
  return start_in(owner, how, listener, nullptr, site);
}

void agent_core::start_here(scope& owner, birth_listener* listener,
                            const std::shared_ptr<door>& listening) {
  const std::uint32_t lives = !has_extra() ? 1 : extra().lives;
  for (std::uint32_t i = 0; i < lives; ++i)
    (void)core_ref::adopt(
        start_in(owner, scope::launch::ordinary, listener, listening, extra().site));
}

fiber* agent_core::start_in(scope& owner, scope::launch how, birth_listener* listener,
                            const std::shared_ptr<door>& listening, std::source_location site) {
  agent_life* const life = make_life();
  const core_ref guard(life);
  if (listener != nullptr) life->notify(listener, listening);
  fiber* const f = owner.adopt(life, {}, site, how, this);
  if (f->ended) {  // the scope is already cancelled: no life begins
    if (!supervised_ && lives_ == nullptr) finish_here(weir::ending::cancelled);
    return f;
  }
  f->name = *name_ == '\0' ? nullptr : name_;
  life_began(*life);
  return f;
}

bool agent_core::stop_awaits_first_life() const noexcept {
  const agent_phase p = cycle_.phase();
  return (p == agent_phase::unborn_stopped || p == agent_phase::coming_stopped) &&
         generation_.load(std::memory_order_relaxed) == 0;
}

void agent_core::reopen_here() noexcept {
  if (!ended_for_good() && !stop_awaits_first_life()) mail_.open();
}

// This message arrives before any that is sent to that life. Without a supervisor the agent is open
// before its first life; only a stop closes it.
void agent_core::life_is_coming() noexcept {
  if (supervised_) reopen_here();
  cycle_.on(life_event::request);
}

bool agent_core::await_life(agent_timer& timer) noexcept {
  const bool comes = is_coming(cycle_.phase());
  if (comes) need_extra().early_timers.push_back(&timer);
  return comes;
}

// The life that they were meant for does not come.
void agent_core::forget_early_requests() noexcept {
  if (lives_ != nullptr || !has_extra()) return;
  for (agent_timer* t : std::exchange(extra().early_timers, {})) t->start_here();
  settle_stops();
}

void agent_core::stand_in_ended() noexcept {
  if (!supervised_ && !ended_for_good()) finish(weir::ending::cancelled);
}

void agent_core::life_began(agent_life& life) noexcept {
  const bool first = lives_ == nullptr;
  const bool awaited = awaits_life();
  if (first) {
    generation_.store(generation_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    mail_.forget_old();
    if (cycle_.on(life_event::born) == agent_phase::starting) {
      if (supervised_) reopen_here();
      mail_.forget_mark();
    } else {
      check_drained();
    }
  }
  life.generation_ = generation_.load(std::memory_order_relaxed);
  life.sibling_ = std::exchange(lives_, &life);
  if (!awaited) return;
  for (agent_timer* t : std::exchange(extra().early_timers, {})) t->start_here();
  if (std::exchange(extra().early_crash, false)) crash_here();
}

void agent_core::life_ended(agent_life& life) noexcept {
  agent_life** at = &lives_;
  while (*at != &life) at = &(*at)->sibling_;
  *at = life.sibling_;
  const bool crashed = life.result().is_error();
  if (crashed) {
    ending_.store(weir::ending::crashed, std::memory_order_relaxed);
    // The owner of a life with `.on` is on another loop and gets the error: it is not kept here.
    if (has_extra() && extra().elsewhere) {
      loop::here()->emit_passing("crash", name(), life.generation_, life.result().error());
    } else {
      loop::here()->emit("crash", name(), life.generation_, 0, life.result().error());
    }
  }
  if (lives_ != nullptr) return;
  if (supervised_) {
    need_extra();
    mail_.count_old();
    cycle_.on(life_event::end);
  } else {
    const bool any_crashed = ending_.load(std::memory_order_relaxed) == weir::ending::crashed;
    finish_here(any_crashed                    ? weir::ending::crashed
                : life.result().is_cancelled() ? weir::ending::cancelled
                                               : weir::ending::normal);
  }
  settle_stops();
}

// Settles the futures of stop(): the life has ended, or none will begin.
void agent_core::settle_stops() noexcept {
  if (!has_extra()) return;
  std::vector<stop_ticket*> stops;
  stops.swap(extra().stops);
  for (stop_ticket* ticket : stops) ticket->settle();
}

// The agent's loop has crashed: callers and watchers on other loops are notified.
void agent_core::loop_crashed(agent_life& life) noexcept {
  agent_life** at = &lives_;
  while (*at != nullptr && *at != &life) at = &(*at)->sibling_;
  if (*at != nullptr) *at = life.sibling_;
  if (lives_ != nullptr) return;
  idle_ = nullptr;
  flush(errc::loop_gone);
  if (has_extra()) {
    flush_line(errc::loop_gone);
    settle_stops();
  }
  if (supervised_) {
    cycle_.on(life_event::end);
  } else {
    finish_here(weir::ending::cancelled);
  }
}

// ------------------------------------------------------------------ decisions of the owner

void agent_core::expect_life(bool was_stopped) noexcept {
  at_home([was_stopped](agent_core& a) { a.expect_life_here(was_stopped); });
}

void agent_core::expect_life_here(bool was_stopped) noexcept {
  if (ended_for_good()) return;
  reopen_here();
  cycle_.on(life_event::expect);
  mail_.forget_mark();
  forget_early_requests();
  refuse_set_aside(errc::agent_restarted);
  if (!was_stopped) flush_old(errc::agent_restarted);
  if (mail_.is_bounded()) admit_line();
}

void agent_core::shut(errc code) noexcept {
  at_home([code](agent_core& a) { a.shut_here(code); });
}

void agent_core::shut_here(errc code) noexcept {
  mail_.close(code);
  cycle_.on(life_event::shut);
  mail_.forget_mark();
  flush(code);
  if (mail_.is_bounded()) flush_line(code);
  forget_early_requests();
}

void agent_core::finish(weir::ending how) noexcept {
  at_home([how](agent_core& a) { a.finish_here(how); });
}

void agent_core::finish_here(weir::ending how) noexcept {
  if (ended_for_good()) return;
  if ((marks_.fetch_or(name_over) & name_claimed) != 0) forget_agent(*this);
  ending_.store(how, std::memory_order_relaxed);
  shut_here(how == weir::ending::crashed ? errc::agent_crashed : errc::agent_stopped);
  drop_arguments();
  notify_watches();
}

// ------------------------------------------------------------------ join and monitor

bool agent_core::watch(end_watch& w) noexcept {
  const std::lock_guard lock(lock_of(*this));
  if (ended_for_good()) return false;
  w.after = std::exchange(need_extra().watches, &w);
  if (w.after != nullptr) w.after->before = &w;
  return true;
}

void agent_core::unwatch(end_watch& w) noexcept {
  {
    const std::lock_guard lock(lock_of(*this));
    if (w.is_waiting()) {
      (w.before == nullptr ? extra().watches : w.before->after) = w.after;
      if (w.after != nullptr) w.after->before = w.before;
      w.take_back();
    }
  }
  w.leave();
}

void agent_core::notify_watches() noexcept {
  end_watch* all = nullptr;
  {
    const std::lock_guard lock(lock_of(*this));
    cycle_.on(life_event::finish);
    if (has_extra()) all = std::exchange(extra().watches, nullptr);
    for (end_watch* w = all; w != nullptr; w = w->after) (void)w->claim();
  }
  // The list is newest first; notify in the order of registration.
  end_watch* ordered = nullptr;
  while (all != nullptr) {
    end_watch* const w = all;
    all = w->after;
    w->after = std::exchange(ordered, w);
  }
  while (ordered != nullptr) {
    end_watch* const w = ordered;
    ordered = w->after;
    w->answer();
  }
}

void end_wait_base::arm() {
  watch_ = new end_watch;
  watch_->ask(*this, !of_->is_here());
  if (of_->watch(*watch_)) return;
  watch_->take_back();
  answered();
}

void end_wait_base::answered() noexcept {
  std::exchange(watch_, nullptr)->dispose();
  complete();
}

cancel_result end_wait_base::withdraw() noexcept {
  of_->unwatch(*std::exchange(watch_, nullptr));
  return cancel_result::done;
}

end_wait_base::~end_wait_base() {
  if (watch_ != nullptr) of_->unwatch(*watch_);
}

void end_wait_base::describe(dump_line& line) const {
  line.add("the end of agent").add_name(of_->name());
}

void end_wait_base::blockers(blocker_list& list) const { of_->blockers(list); }

}  // namespace weir::detail
