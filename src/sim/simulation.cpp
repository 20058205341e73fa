// SPDX-License-Identifier: MIT
#include "sim/simulation.hpp"

#include <algorithm>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/wait.hpp>

#include "core/cancel_tree.hpp"
#include "core/deadlock.hpp"
#include "core/dump_tree.hpp"
#include "core/fatal.hpp"

namespace weir::detail {

namespace {

/// No ready item waits longer than this many steps, unless a great many are ready.
constexpr std::int64_t patience_steps = 1000;
constexpr std::string_view main_name = "main";

reason_ref evicted(const char* message, time_point when) {
  return make_reason({cancel_kind::evicted, message}, 0, when);
}

std::string quoted(std::string_view name) {
  std::string text("'");
  text.append(name).append("'");
  return text;
}

std::string quantity(std::int64_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

}  // namespace

simulation::simulation(const sim::options& options, adversary chooser)
    : options_(options),
      adversary_(std::move(chooser)),
      budget_(adversary_.preempts() ? std::int16_t{0} : environment::budget()),
      disk_(*this),
      wires_(*this),
      network_(wires_) {}

simulation::~simulation() {
  for (hosted_loop& h : loops_)
    if (&h.here() == loop::here()) fatal("a sim::world was destroyed by a program that runs in it");
  while (!loops_.empty()) evict(loops_.back());
}

wall_time simulation::wall_now() {
  const duration passed = now_.time_since_epoch() + wall_shift_;
  if (passed > duration::zero() && options_.start_time > wall_time::max() - passed)
    return wall_time::max();
  return options_.start_time + passed;
}

void simulation::shift_wall_clock(duration d) noexcept {
  wall_shift_ += d;
  notify_watches();
}

// ------------------------------------------------------------------ loops

hosted_loop& simulation::add(std::string_view name, fiber& root, std::source_location site) {
  run_options options;
  const std::string kept(name);
  options.name = kept;
  strand* const running = std::exchange(current, nullptr);  // which the new root is no child of
  hosted_loop& made = loops_.emplace_back(*this, options, root, site);
  current = running;
  wires_.add_host(name);
  collect(made);
  return made;
}

hosted_loop* simulation::find(std::string_view name) noexcept {
  for (hosted_loop& h : loops_)
    if (h.name() == name && !h.here().dead()) return &h;
  return nullptr;
}

loop_ref simulation::named_loop(std::string_view name) {
  if (in_dead_world()) return {};
  if (hosted_loop* known = find(name)) return {known->here().index(), known->here().serial()};
  if (name == main_name || name.empty())
    raise(errc::invalid_argument,
          "world: a loop cannot be called " + quoted(name) +
              (name.empty() ? "; give it a name" : "; that is the loop of world::run"));
  auto* root = scope::make(serve_idly());
  const core_ref keep(root);
  hosted_loop& made = add(name, *root, std::source_location::current());
  return {made.here().index(), made.here().serial()};
}

void simulation::start(const std::shared_ptr<served_loop>& made) {
  fiber* root = made->make_root();
  const core_ref keep(root);
  hosted_loop& h = add(made->name(), *root, std::source_location::current());
  h.served = made;
  made->has_started(h.here());
}

void simulation::crash(std::string_view name) {
  if (in_dead_world()) return;
  hosted_loop* victim = find(name);
  for (hosted_loop& h : loops_)
    if (victim == nullptr && h.name() == name) return;  // it is already crashing
  if (victim == nullptr)
    raise(errc::invalid_argument, "world: there is no loop " + quoted(name) + " to crash");
  if (victim == main_)
    raise(errc::invalid_argument,
          "world: crash of 'main', whose result world::run waits for; crash a named loop");
  if (&victim->here() == loop::here())
    raise(errc::invalid_argument,
          "world: loop " + quoted(name) + " cannot crash itself; crash it from another loop");
  evict(*victim);
}

void simulation::evict(hosted_loop& victim) {
  const std::uint32_t serial = victim.here().serial();
  victim.here().evict(evicted("the loop was crashed", now_));
  disk_.crash(serial);
  wires_.loop_crashed(serial);
  remove(victim);
}

void simulation::remove(hosted_loop& gone) {
  (void)ready_.take_all_of(gone);
  const std::shared_ptr<served_loop> served = std::move(gone.served);
  loops_.remove_if([&](const hosted_loop& h) { return &h == &gone; });
  if (served != nullptr) served->has_ended_now();
}

// ------------------------------------------------------------------ running

void simulation::run(fiber& root, std::source_location site) {
  require_no_loop();
  verdict_.reset();
  uncaught_ = nullptr;
  adversary_.freeze(false);
  deadlocked_ = false;
  steps_before_ = steps_;
  main_ = &add(main_name, root, site);
  drive();
  adversary_.expect_end();
  if (adversary_.mismatch().empty()) look_for_leaks();
  if (main_ != nullptr) remove(*std::exchange(main_, nullptr));
  if (verdict_) raise_verdict();
  if (!adversary_.mismatch().empty())
    raise(errc::trace_mismatch,
          "the trace does not fit the program any more: " + adversary_.mismatch());
  if (uncaught_) std::rethrow_exception(std::exchange(uncaught_, nullptr));
}

void simulation::drive() {
  while (main_ != nullptr && !main_->finished()) {
    collect(*main_);
    if (!ready_.empty()) {
      step();
    } else if (!fire_due() && !jump()) {
      stuck();
    }
  }
}

std::size_t simulation::pick() {
  const auto many = static_cast<std::int64_t>(ready_.size());
  // Items that became ready together are taken one after the other, so the first is taken earlier.
  if (steps_ - ready_.front().since >= std::max(patience_steps - many, 4 * many)) {
    adversary_.demote(ready_);
    return 0;
  }
  return adversary_.choose(ready_);
}

void simulation::step() {
  if (steps_ - steps_before_ == options_.max_steps) {
    fail(errc::livelock,
         "livelock: the limit of " + std::to_string(options_.max_steps) + " steps was reached",
         dump_all());
    return give_up();
  }
  const std::size_t index = pick();
  if (!adversary_.mismatch().empty()) return give_up();
  const ready_item next = ready_.take(index);
  ++steps_;
  hosted_loop& h = *next.on;
  {
    const active_loop active(h.here());
    h.here().request_stops();
    if (next.which != nullptr) {
      h.here().run_strand(*next.which);
    } else {
      h.inbox_listed = false;
      h.here().clock_moved();
      h.here().deliver_one();
    }
    h.here().request_stops();
    h.here().look_around(false);
  }
  collect(h);
  notice_messages();
  if (&h == main_) return;
  if (h.finished()) {
    remove(h);
    notice_messages();
  } else {
    collect(h);
  }
}

void simulation::collect(hosted_loop& from) {
  if (from.paused_until) return;
  while (strand* s = from.here().take_ready()) {
    const ready_item item(s, from, steps_);
    adversary_.enrol(item);
    ready_.push(item);
    if (s->preempted && adversary_.preempts()) ready_.last_goes_first();
  }
}

void simulation::notice_messages() {
  for (hosted_loop& h : loops_) {
    if (h.inbox_listed || h.paused_until) continue;
    door& d = h.here().own_door();
    if (h.asleep) {
      if (!d.rang()) continue;
      d.messages.end_sleep();
    }
    h.asleep = !h.here().has_messages() && d.messages.begin_sleep();
    if (h.asleep) continue;
    h.inbox_listed = true;
    const ready_item item(nullptr, h, steps_);
    adversary_.enrol(item);
    ready_.push(item);
  }
}

bool simulation::fire_due() {
  bool fired = end_pauses(now_);
  fired = wires_.deliver_due() || fired;
  for (hosted_loop& h : loops_) {
    if (h.paused_until) continue;
    const active_loop active(h.here());
    h.here().clock_moved();
    fired = h.here().fire_timers(&adversary_) || fired;
    h.here().look_around(!fired);
    collect(h);
  }
  notice_messages();  // posted while nothing ran: by the test, between two runs
  return fired || !ready_.empty();
}

bool simulation::jump() {
  time_point next = wires_.next();
  for (hosted_loop& h : loops_) next = std::min(next, next_step_of(h));
  if (next == time_point::max()) return false;
  now_ = std::max(now_, next);
  return true;
}

// ------------------------------------------------------------------ pauses

void simulation::pause(std::string_view name, duration d) {
  if (in_dead_world()) return;
  hosted_loop* h = find(name);
  if (h == nullptr)
    raise(errc::invalid_argument, "world: there is no loop " + quoted(name) + " to pause");
  if (d < duration::zero())
    raise(errc::invalid_argument, "world: pause of loop " + quoted(name) + " for " +
                                      std::to_string(d.count()) + " ns; give 0 or more");
  if (d == duration::zero()) return;
  const time_point until = saturating_add(now_, d);
  h->paused_until = std::max(h->paused_until.value_or(until), until);
  for (const ready_item& item : ready_.take_all_of(*h)) h->set_aside.push_back(item);
}

// When the loop has something to do next, as far as is known.
time_point simulation::next_step_of(hosted_loop& h) {
  const time_point next = h.here().next_look();
  if (!h.paused_until) return next;
  const bool ready = !h.set_aside.empty() || !h.here().nothing_ready() || h.here().has_messages();
  return ready ? *h.paused_until : std::max(next, *h.paused_until);
}

// What was set aside comes after what is ready elsewhere.
bool simulation::end_pauses(time_point at) {
  bool any = false;
  for (hosted_loop& h : loops_) {
    if (!h.paused_until || *h.paused_until > at) continue;
    h.paused_until.reset();
    for (const ready_item& item : std::exchange(h.set_aside, {})) {
      ready_.push(ready_item(item.which, h, steps_));
      any = true;
    }
    collect(h);
  }
  return any;
}

// ------------------------------------------------------------------ verdicts

void simulation::fail(errc code, std::string message, std::string tree) {
  if (!verdict_) verdict_ = sim_verdict{code, std::move(message), std::move(tree)};
  if (code != errc::always_violated) adversary_.freeze(true);
}

// Nothing is ready and no timer is armed. First the program is cancelled; operations that still
// wait then are abandoned, because nothing can complete them.
void simulation::stuck() {
  end_pauses(time_point::max());
  if (std::exchange(deadlocked_, true)) {
    const active_loop active(main_->here());
    const bool any = main_->here().suspends().abandon_all();
    if (!any) return give_up();
    return collect(*main_);
  }
  std::vector<loop*> all;
  for (hosted_loop& h : loops_) all.push_back(&h.here());
  std::string message = "deadlock: nothing is ready and nothing can ever wake this program";
  const std::string cycle = waiting_cycle(all);
  if (!cycle.empty()) message.append("; waiting for each other in a cycle: ").append(cycle);
  fail(errc::deadlock, std::move(message), dump_all());
  const active_loop active(main_->here());
  main_->here().cancel_everything("deadlock", true);
  collect(*main_);
}

// The run ends like a crash of the main loop.
void simulation::give_up() { evict(*std::exchange(main_, nullptr)); }

void simulation::look_for_leaks() {
  std::string found;
  std::vector<std::uint32_t> leaking;  // serial numbers: evicting one loop may crash another
  for (hosted_loop& h : loops_) {
    const door& d = h.here().own_door();
    const std::int64_t own_fibers = h.tree.ended() ? 0 : 1;  // a named loop's root
    const std::int64_t fibers = d.fibers.get() - own_fibers;
    const std::int64_t scopes = d.scopes.get() - 1;
    const std::int64_t timers = d.timers.get();
    if (fibers == 0 && scopes == 0 && timers == 0) continue;
    leaking.push_back(h.here().serial());
    found.append(found.empty() ? "leak: at the end of the run " : ", and ");
    found.append("loop ").append(quoted(h.name())).append(" still has ");
    found.append(quantity(fibers, "fiber")).append(", ").append(quantity(scopes, "scope"));
    found.append(" and ").append(quantity(timers, "timer"));
  }
  if (leaking.empty()) return;
  fail(errc::leak, std::move(found), dump_all());
  for (const std::uint32_t serial : leaking) {
    const auto h = std::find_if(loops_.begin(), loops_.end(), [&](hosted_loop& other) {
      return other.here().serial() == serial;
    });
    if (h == loops_.end()) continue;
    if (&*h == main_) main_ = nullptr;
    evict(*h);
  }
}

void simulation::raise_verdict() const {
  throw sim::failure(verdict_->code, verdict_->message + "\n" + verdict_->tree);
}

std::string simulation::dump_all() {
  std::string text;
  for (hosted_loop& h : loops_) {
    const active_loop active(h.here());
    text.append(dump_of(h.here()));
  }
  return text;
}

void simulation::frame_failed(const std::exception_ptr& error) noexcept {
  if (!watches_errors_ || error == last_error_) return;
  last_error_ = error;
  error_tree_ = dump_all();
}

void simulation::always_violated(std::string_view name) {
  const std::string message = "always " + quoted(name) + " does not hold";
  const std::string tree = dump_all();
  fail(errc::always_violated, message, tree);
  // A destructor that runs during unwinding or cancellation must not throw.
  const bool unwinding =
      std::uncaught_exceptions() > 0 || (current != nullptr && current->destroying);
  if (!unwinding) throw sim::failure(errc::always_violated, message + "\n" + tree);
}

void simulation::sometimes(std::string_view name, bool condition) {
  const auto known = seen_.find(name);
  if (known == seen_.end()) {
    seen_.emplace(name, condition);
  } else {
    known->second = known->second || condition;
  }
}

network_state& network_of(loop& here) noexcept {
  return static_cast<simulation&>(here.env()).wires();
}

}  // namespace weir::detail
