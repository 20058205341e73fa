// SPDX-License-Identifier: MIT
#include <weir/supervisor.hpp>

#include <string>
#include <utility>
#include <vector>

#include <weir/detail/core/run_rules.hpp>
#include <weir/error.hpp>

#include "agents/supervisor_core.hpp"
#include "core/cancel_tree.hpp"
#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

// ------------------------------------------------------------------ run

supervisor_region::setup::setup(supervisor_handle owner, const std::source_location& site,
                                birth_listener* when_started)
    : core(std::move(owner)),
      listener(when_started),
      scope(
          [&] {
            scope_options options;
            options.name =
                core->name().empty() ? weir::name("supervisor") : weir::name(core->name());
            return options;
          }(),
          site) {}

supervisor_region::supervisor_region(setup&& s, region_kind kind)
    : guided_scope(std::move(s.scope), kind), core(std::move(s.core)) {
  cancel_tree::make_shield(*this);
  core->enter(*this, s.listener);
}

supervisor_region::~supervisor_region() {
  if (!over) core->abandon();
}

// A cancellation continues outwards after the supervisor has carried it out.
void body_ended(supervisor_region& r, outcome_base& out) {
  r.over = true;
  r.core->life_over();
  if (r.core->was_cancelled() && out.is_value()) {
    auto& result = static_cast<outcome<void>&>(out);
    result.drop_value();
    result.set_cancelled(cancel_tree::reason(*cancel_tree::parent(r)));
  }
  body_ended(static_cast<scope&>(r), out);
}

task<> supervisor_core::run(const supervisor_handle& self, birth_listener* listener) {
  auto body = [](supervisor_region& r) { return r.core->supervise(); };
  return run_scope<void, supervisor_region>(supervisor_region::setup(self, self->site_, listener),
                                            body);
}

// ------------------------------------------------------------------ construction

supervisor_core::supervisor_core(const supervisor_options& options)
    : name_(options.name),
      strategy_(options.strategy),
      auto_shutdown_(options.auto_shutdown),
      max_restarts_(options.max_restarts),
      within_(options.within),
      site_(options.site) {
  require_no_run("supervisor", name());
  const auto require = [&](bool good, const char* problem) {
    if (!good) raise(errc::invalid_argument, text() + ": " + problem);
  };
  require(options.strategy <= strategy::dynamic, "strategy has no known value");
  require(options.auto_shutdown <= auto_shutdown::all_significant,
          "auto_shutdown has no known value");
  require(options.max_restarts >= 0, "max_restarts is negative; give 0 or more, or unbounded");
  require(options.within > duration::zero(), "within is not positive; give the window a length");
  require(options.strategy != strategy::dynamic || options.auto_shutdown == auto_shutdown::never,
          "strategy dynamic has no significant children; leave auto_shutdown at never");
}

// No handle is left: ends its agents, which settles the waits on them. Iterative, so that deep
// nesting cannot overflow the stack.
supervisor_core::~supervisor_core() {
  std::vector<supervisor_handle> below;
  remove_all(below);
  while (!below.empty()) {
    const supervisor_handle nested = std::move(below.back());
    below.pop_back();
    if (nested.use_count() == 1) nested->remove_all(below);
  }
}

void supervisor_core::remove_all(std::vector<supervisor_handle>& nested) {
  while (first_ != nullptr) {
    if (first_->nested != nullptr) nested.push_back(first_->nested);
    remove(*first_);
  }
}

std::string supervisor_core::text() const { return detail::text_of({"supervisor", name()}); }

std::string supervisor_core::text_of_child(std::string_view child) const {
  return detail::text_of({"child", child}) + " of " + text();
}

void supervisor_core::check_home(bool needs_loop) {
  if (!home_.is_here())
    home_.settle({"supervisor", name()}, "send a message to one of its agents", needs_loop);
}

void supervisor_core::check_child(const child_options& o, slot::kind what) const {
  const auto require = [&](bool good, const char* problem) {
    if (!good) raise(errc::invalid_argument, text_of_child(o.name.view()) + ": " + problem);
  };
  if (mode_ == mode::stopping || mode_ == mode::resting || mode_ == mode::over) raise_not_running();
  require(o.restart <= restart::temporary, "restart has no known value");
  require(o.shutdown.value_or({}) >= duration::zero(),
          "shutdown is negative; give a limit of 0 or more, no_wait or no_limit");
  require(!o.significant || auto_shutdown_ != auto_shutdown::never,
          "significant, but the supervisor's auto_shutdown is never; change one of them");
  require(!o.significant || o.restart != restart::permanent,
          "significant, but its restart is permanent; make it transient or temporary");
  const delay_rules delays{o.backoff.base, o.backoff.factor, o.backoff.ceiling, o.backoff.jitter};
  delays.check((text_of_child(o.name.view()) + ": backoff").c_str());
  require(o.backoff.reset_after >= duration::zero(),
          "backoff.reset_after is negative; give 0 or more");
  if (what != slot::kind::agent) {
    const char* const kind = what == slot::kind::task ? "a task has no mailbox"
                                                      : "a supervisor "
                                                        "has no mailbox";
    require(o.capacity == std::int64_t{unbounded} && o.overflow == overflow::reject &&
                o.on_error == on_error::reply && o.on_restart == mailbox::drop,
            (std::string(kind) + "; capacity, overflow, on_error and on_restart are for agents")
                .c_str());
    require(o.on == loop_ref(), "only agents may live on another loop; leave out `on`");
  }
  require(o.name.empty() || !names_.contains(o.name.view()),
          "there is a child of that name already; names are unique within a supervisor");
}

agent_setup supervisor_core::setup_of(const child_options& o) const {
  check_mailbox("child", o.name.view(), o.capacity, o.overflow);
  return {.name = kept_name(o.name),
          .capacity = o.capacity,
          .overflow = o.overflow,
          .on = o.on,
          .on_error = o.on_error,
          .on_restart = o.on_restart,
          .site = o.site,
          .supervised = true,
          .revives = o.restart == restart::permanent,
          .keeps = o.restart != restart::temporary};
}

slot& supervisor_core::add(const child_options& options, slot::kind what) {
  auto made = std::make_unique<slot>(*this, options, what);
  if (!made->name().empty()) names_.emplace(made->name(), made.get());
  link(*made);
  return *made.release();
}

// Starts a new child at once, so that its agent can be stopped from now on, unless children added
// earlier must start first or a destructor is running.
void supervisor_core::added(slot& s) {
  s.is_static = mode_ == mode::passive;
  if (s.is_static) return;
  if (s.agent) s.agent->settle_home();
  shift(s, slot::phase::none, slot::intent::start);
  note(s);
  if (strategy_ == strategy::dynamic && mode_ == mode::running) {
    s.due = true;
  } else if (stage_ == stage::none || (stage_ == stage::starting && cursor_ == nullptr)) {
    stage_ = stage::starting;
    from_ = s.order;
    cursor_ = &s;
  }
  const bool dying = current != nullptr && current->destroying;
  if (mode_ != mode::running || region_->cancel_requested() || dying) return;
  start_if_due(s);
  if (stage_ == stage::starting && cursor_ == &s) drive();
}

void supervisor_core::check_nesting(const supervisor_core& inner) const {
  if (inner.mode_ != mode::passive)
    raise(errc::already_running, inner.text() + " has been run; add one that has not");
  for (const supervisor_core* at = this; at != nullptr; at = at->parent_) {
    if (at == &inner)
      raise(errc::invalid_argument,
            inner.text() + " is added to itself, or to one of its own descendants");
  }
}

// ------------------------------------------------------------------ inspection

std::vector<child_info> supervisor_core::which_children() const {
  std::vector<child_info> all;
  all.reserve(size_);
  for (const slot* s = last_; s != nullptr; s = s->previous)
    all.push_back({std::string(s->name()), state_of(*s), s->restarts});
  return all;
}

child_counts supervisor_core::count_children() const noexcept {
  return {size_, active_, supervisors_, size_ - supervisors_};
}

// ------------------------------------------------------------------ operations for users

void supervisor_core::raise_not_running() const {
  raise(errc::not_running,
        text() + (mode_ == mode::passive    ? " does not run yet; call run()"
                  : mode_ == mode::stopping ? " is being stopped"
                  : mode_ == mode::resting  ? " is stopped, or waits for its restart"
                                            : " has ended"));
}

void supervisor_core::require_running() const {
  if (mode_ != mode::starting && mode_ != mode::running) raise_not_running();
}

slot& supervisor_core::named(std::string_view child) {
  const auto at = child.empty() ? names_.end() : names_.find(child);
  if (at == names_.end())
    raise(errc::no_such_child, text() + " has no child '" + std::string(child) + "'");
  return *at->second;
}

// Fails if the child has a life or is about to get one.
void supervisor_core::refuse_busy(const slot& s, const char* what) const {
  const bool alive = s.now != slot::phase::none && s.now != slot::phase::zombie;
  const bool first = mode_ == mode::starting || s.manual;
  if (s.then == slot::intent::restart || (s.then != slot::intent::none && !alive && !first))
    raise(errc::child_restarting, std::string(what) + ": " + text_of_child(s.name()) +
                                      " is being restarted; terminate it first");
  if (s.now != slot::phase::none || s.then != slot::intent::none)
    raise(errc::child_running,
          std::string(what) + ": " + text_of_child(s.name()) + " is running; terminate it first");
}

namespace {

// Whether the running code is part of `of`, and so would wait for itself.
bool runs_in(const context& of) noexcept {
  for (const context* c = current->top; c != nullptr; c = cancel_tree::parent(*c))
    if (c == &of) return true;
  return false;
}

}  // namespace

task<> supervisor_core::restart_child(supervisor_handle self, std::string child) {
  supervisor_core& c = *self;
  c.check_home(true);
  c.require_running();
  slot& s = c.named(child);
  const bool waits_for_zombie =
      s.now == slot::phase::zombie && s.then == slot::intent::none && !c.forgets(s);
  if (!waits_for_zombie) c.refuse_busy(s, "restart_child");
  request done(s.requests, request::aim::started, child);
  s.manual = s.due = true;
  c.shift(s, s.now, slot::intent::start);
  c.note(s);
  co_await pending<request_wait>(&done);
}

task<> supervisor_core::terminate_child(supervisor_handle self, std::string child) {
  supervisor_core& c = *self;
  c.check_home(true);
  if (c.mode_ != mode::passive) c.require_running();
  slot& s = c.named(child);
  const auto* const life = static_cast<const fiber*>(s.life.get());
  if (life != nullptr && runs_in(*life))
    raise(errc::call_cycle, "terminate_child: " + c.text_of_child(child) +
                                " is called from inside it, and would wait for itself");
  if (s.now == slot::phase::none || s.now == slot::phase::zombie) {
    s.why = s.now == slot::phase::none ? slot::cause::none : slot::cause::terminated;
    if (s.then != slot::intent::none) c.forget_plans(s, errc::never_started);
    const bool forgotten = s.temporary() || (c.mode_ != mode::passive && c.forgets(s));
    if (s.now == slot::phase::none && forgotten) c.remove(s);
    c.wake();
    co_return;
  }
  request done(s.requests, request::aim::stopped, child);
  if (s.now == slot::phase::stopping) {
    s.why = slot::cause::terminated;
  } else {
    c.begin_stop(s, slot::cause::terminated);
  }
  co_await pending<request_wait>(&done);
}

task<> supervisor_core::delete_child(supervisor_handle self, std::string child) {
  supervisor_core& c = *self;
  c.check_home(true);
  if (c.mode_ != mode::passive) c.require_running();
  slot& s = c.named(child);
  c.refuse_busy(s, "delete_child");
  c.remove(s);
  co_return;
}

task<> supervisor_core::stop(supervisor_handle self) {
  supervisor_core& c = *self;
  c.check_home(true);
  if (c.region_ == nullptr) co_return;
  if (runs_in(*c.region_))
    raise(errc::call_cycle, "stop: " + c.text() +
                                " is stopped by one of its descendants, which would wait for "
                                "itself; let the task that runs it do so");
  request done(c.stops_, request::aim::ended, c.name());
  c.stop_asked_ = true;
  c.wake();
  co_await pending<request_wait>(&done);
}

// ------------------------------------------------------------------ supervisor_face

supervisor_core& supervisor_face::core() const {
  if (core_ == nullptr)
    raise(errc::invalid_argument, "empty supervisor: it was moved from, or added to another one");
  return *core_;
}

agent_setup supervisor_face::prepare_agent(const child_options& options) const {
  core().check_home(false);
  core().check_child(options, slot::kind::agent);
  return core().setup_of(options);
}

void supervisor_face::adopt_agent(const child_options& options, agent_core& made) const {
  slot& s = core().add(options, slot::kind::agent);
  s.agent = agent_handle::share(&made);
  core().added(s);
}

void supervisor_face::check_task(const child_options& options, bool empty) const {
  core().check_home(false);
  core().check_child(options, slot::kind::task);
  if (empty) raise_empty_job();
}

void supervisor_face::adopt_task(const child_options& options,
                                 std::unique_ptr<repeatable> made) const {
  slot& s = core().add(options, slot::kind::task);
  s.work = std::move(made);
  core().added(s);
}

void supervisor_face::listen(std::unique_ptr<crash_listener> listener) const {
  core().check_home(false);
  core().listen(std::move(listener));
}

supervisor_ref supervisor_face::add_supervisor(child_options options, supervisor&& inner) {
  supervisor_core& nested = inner.core();
  core().check_home(false);
  nested.check_home(false);
  core().check_child(options, slot::kind::supervisor);
  core().check_nesting(nested);
  slot& s = core().add(options, slot::kind::supervisor);
  nested.nest(core());
  s.nested = std::move(inner.core_);
  core().added(s);
  return supervisor_ref(s.nested);
}

std::vector<child_info> supervisor_face::which_children() const {
  core().check_home(false);
  return core().which_children();
}

child_counts supervisor_face::count_children() const {
  core().check_home(false);
  return core().count_children();
}

task<> supervisor_face::restart_child(std::string_view name) {
  (void)core();
  return supervisor_core::restart_child(core_, std::string(name));
}

task<> supervisor_face::terminate_child(std::string_view name) {
  (void)core();
  return supervisor_core::terminate_child(core_, std::string(name));
}

task<> supervisor_face::delete_child(std::string_view name) {
  (void)core();
  return supervisor_core::delete_child(core_, std::string(name));
}

task<> supervisor_face::stop() {
  (void)core();
  return supervisor_core::stop(core_);
}

std::string_view supervisor_face::name() const { return core().name(); }

}  // namespace detail

supervisor::supervisor(supervisor_options options)
    : supervisor_face(std::make_shared<detail::supervisor_core>(options)) {}

task<> supervisor::run() {
  (void)core();
  return detail::supervisor_core::run(core_, nullptr);
}

}  // namespace weir
