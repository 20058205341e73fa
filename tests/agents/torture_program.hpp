// SPDX-License-Identifier: MIT
// The program of the torture test: a tree of supervisors on each loop, with agents on all loops,
// clients that do everything to them that can be done, and what must hold when they are done.
#pragma once

#include "torture_support.hpp"

#include "support/sanitizers.hpp"

namespace torture {

inline constexpr std::int64_t plenty = 1'000'000'000;  // restarts: never too many

// ------------------------------------------------------------------ clients

/// A fiber that does random things to random agents of all trees.
class client {
 public:
  client(world& w, int index)
      : of_(w),
        me_(1 + index),
        dice_(w.seed * 1000 + static_cast<std::uint64_t>(index)),
        counts_(agent_count) {}

  /// Sessions, one after the other: some are cancelled with everything that is under way.
  task<> run() {
    while (!of_.over) {
      auto session = [&](weir::scope& s) -> task<> {
        const int steps = 10 + dice_.below(40);
        for (int i = 0; i < steps && !of_.over; ++i) {
          co_await step(s);
          co_await weir::sleep(of_.gap * dice_.below(100) / 100);
        }
        if (dice_.percent(40)) s.cancel("the client gives up");
      };
      (void)co_await weir::settle(weir::with_scope(session));
    }
  }

 private:
  // Half of the operations go to few agents, so that mailboxes fill up.
  int pick() {
    if (dice_.percent(50)) return dice_.below(agent_count);
    return dice_.below(loop_count) * agents_per_tree + agents_per_tree - 1 - dice_.below(16);
  }
  const weir::agent_ref<member>& ref(int id) const {
    return *of_.refs[static_cast<std::size_t>(id)];
  }
  stamp next(int id) { return {me_, ++counts_[static_cast<std::size_t>(id)]}; }

  template <class F, class... A>
  void cast(int id, F handler, A... args) {
    const weir::sent result = ref(id).cast(handler, next(id), args...);
    if (result != weir::sent::full) ++of_.at(id).mail;
  }
  void cast_some(int id) {
    const int ms = dice_.below(20);
    switch (dice_.below(12)) {
      case 0:
        return cast(id, &member::fail);
      case 1:
        return cast(id, &member::fail_later, ms);
      case 2:
      case 3:
        return cast(id, &member::arm, ms);
      case 4:
      case 5:
        return cast(id, &member::delegate, 3 * ms, dice_.percent(10));
      case 6:
        return cast(id, &member::insist, 2 * ms);
      case 7:
        for (int i = 0; i < 12; ++i) cast(id, &member::touch);
        return;
      case 8:
        if (of_.at(id).steady) return cast(id, &member::touch);
        return cast(id, &member::retire);
      default:
        return cast(id, &member::work, ms);
    }
  }
  query any_query() {
    switch (dice_.below(9)) {
      case 0:
        return {question::refuse, 0};
      case 1:
      case 2:
        return {question::relay, 1 + dice_.below(4)};
      case 3:
      case 4:
        return {question::there_and_back, dice_.below(2)};
      case 5:
      case 6:
        return {question::later, dice_.below(20)};
      default:
        return {};
    }
  }
  task<> call_and_leave(int id) {
    const int wait = dice_.below(10);
    const query q = any_query();
    auto leave = [&](weir::scope& s) -> task<> {
      (void)s.spawn(ask(of_, id, {}, q));
      co_await weir::sleep(wait * 1ms);
      s.cancel("not needed any more");
    };
    (void)co_await weir::settle(weir::with_scope(leave));
  }
  task<> send_some(int id, weir::duration limit);
  task<> end_some(int id);
  task<> look_up(int id);

  task<> step(weir::scope& s) {
    const int id = pick();
    const weir::duration limit = (1 + dice_.below(30)) * 1ms;
    switch (dice_.below(16)) {
      case 0:
      case 1:
        return ask(of_, id, next(id), any_query());
      case 2:
      case 3:
        return ask(of_, id, next(id), any_query(), limit);
      case 4:
      case 5:
        return call_and_leave(id);
      case 6:
      case 7:
        (void)s.spawn(ask(of_, id, {}, any_query()));
        return nothing();
      case 8:
      case 9:
        return send_some(id, dice_.percent(50) ? limit : weir::duration::max());
      case 10:
        return end_some(id);
      case 11:
        return look_up(id);
      case 12:  // perhaps there is no room any more
        for (int i = 0; i < 12; ++i) cast(id, &member::touch);
        return ask(of_, id, next(id), {}, limit);
      default:
        cast_some(id);
        return nothing();
    }
  }
  static task<> nothing() { co_return; }

  world& of_;
  const int me_;
  generator dice_;
  std::vector<std::uint64_t> counts_;  // of messages, by agent
};

/// A message that is sent, or reported not to be: only then it must not be handled.
class mailing {
 public:
  mailing(record& r, stamp from) : to(r), sent(std::make_shared<token>(from, 0)) {}
  mailing(const mailing&) = delete;
  mailing& operator=(const mailing&) = delete;
  ~mailing() {
    if (accepted) {
      ++to.mail;
    } else if (sent->runs == 0) {
      to.of.keep_unhandled(sent);
    } else {
      to.of.problem("'" + to.name + "': handled, although it was not accepted");
    }
  }
  record& to;
  const token_ptr sent;
  bool accepted = false;
};

inline task<> client::send_some(int id, weir::duration limit) {
  mailing one(of_.at(id), next(id));
  try {
    co_await weir::with_timeout(limit, ref(id).send(&member::take, one.sent));
    one.accepted = true;
  } catch (const weir::timeout_error&) {
  } catch (const weir::agent_error& e) {
    if (e.code() == weir::errc::call_cycle || e.code() == weir::errc::loop_gone)
      of_.problem("'" + one.to.name + "': send failed: " + e.what());
  }
}

inline task<> client::end_some(int id) {
  record& r = of_.at(id);
  if (dice_.percent(20)) r.fail_next = true;
  if (r.steady) co_return cast(id, &member::fail);
  auto end = ref(id).stop();
  if (dice_.percent(50)) co_return;
  // A life may wait for another one that waits for this client's messages: hence the limit.
  (void)co_await weir::settle(weir::with_timeout(100ms, std::move(end)));
}

inline task<> client::look_up(int id) {
  const record& r = of_.at(id);
  const auto found = weir::registry::find<member>(r.name);
  if (found) of_.require(*found == ref(id), r, "the registry has another agent of that name");
  (void)co_await weir::settle(weir::with_timeout(1ms, ref(id).join()));
}

// ------------------------------------------------------------------ trees

/// A supervisor with supervisors below it, for the agents of one loop's share of ids.
class tree {
 public:
  tree(world& w, int index)
      : of_(w), index_(index), dice_(w.seed * 77 + static_cast<std::uint64_t>(id_of(0))) {
    build();
  }

  /// Until it is stopped.
  task<> run() {
    auto body = [&](weir::scope& s) -> task<> {
      around_ = &s;
      co_await root_.run();
    };
    const auto out = co_await weir::settle(weir::with_scope(body));
    if (out.is_error()) of_.problem("a tree ended with an error: " + weir::describe(out.error()));
  }
  task<> stop() {
    if (index_ % 2 == 0) {
      around_->cancel("the end");
      co_return;
    }
    co_await root_.stop();
  }
  void watch_all(weir::scope& s) {
    for (int i = 0; i < agents_per_tree; ++i) {
      const int id = id_of(i);
      const weir::agent_ref<member>& ref = *of_.refs[static_cast<std::size_t>(id)];
      if (id % 7 == 0) weir::registry::add(ref);
      (void)s.spawn(watch(of_.at(id), ref));
    }
  }
  static task<> watch(record& r, weir::agent_ref<member> ref) {
    (void)co_await ref.monitor();
    ++r.endings;
    r.of.require(r.alive == 0, r, "its end is reported while it lives");
    if (weir::registry::find<member>(r.name) == ref)
      r.of.problem("'" + r.name + "': its end is reported before its name is free");
  }
  task<> administer(weir::scope& watchers) {
    while (!of_.over) {
      co_await weir::sleep(of_.gap * (1 + dice_.below(100)) / 25);
      co_await administer_once(watchers);
    }
  }
  bool is_quiet();
  void check();

 private:
  int id_of(int i) const noexcept { return index_ * agents_per_tree + i; }
  weir::child_options options_of(record& r, weir::restart kind);
  template <class S>
  void add_agent(S& to, int i, weir::restart kind);
  template <class S>
  weir::agent_ref<member> add_to(S& to, record& r, const weir::child_options& options) {
    if (r.scoped) return to.template add<member>(options, &r, with_area());
    return to.template add<member>(options, &r);
  }
  weir::supervisor_ref add_group(const char* name, weir::strategy how, int from, int until,
                                 std::initializer_list<weir::restart> kinds);
  void add_fragile(int from, int until);
  void build();
  task<> administer_once(weir::scope& watchers);
  task<bool> attempt(task<> what);
  task<> try_extra(weir::scope& watchers);
  void check_agent(record& r, const weir::agent_info& seen);

  world& of_;
  const int index_;
  generator dice_;
  weir::scope* around_ = nullptr;
  weir::supervisor root_{{.name = "root", .max_restarts = plenty, .within = 1s}};
  std::vector<std::pair<weir::supervisor_ref, std::vector<std::string>>> groups_;
  std::optional<weir::supervisor_ref> around_fragile_;
  std::optional<weir::supervisor_ref> crowd_;
  int extra_ = 0;
};

inline weir::child_options tree::options_of(record& r, weir::restart kind) {
  constexpr weir::overflow policies[] = {weir::overflow::wait, weir::overflow::reject,
                                         weir::overflow::drop_oldest, weir::overflow::drop_newest,
                                         weir::overflow::stop};
  constexpr weir::shutdown_limit limits[] = {50ms, 10ms, weir::no_wait, weir::no_limit, 0ms};
  const int n = r.id;
  weir::child_options o;
  o.name = r.name;
  o.restart = kind;
  o.shutdown = limits[n % 5];
  o.on = of_.loops[static_cast<std::size_t>(n % loop_count)];
  // ThreadSanitizer does not see how libstdc++ counts those who hold an error: the caller and the
  // crashed agent would seem to race for it.
  const bool crashes = n % 3 == 0 && WEIR_TEST_TSAN == 0;
  o.on_error = crashes ? weir::on_error::crash : weir::on_error::reply;
  o.on_restart = n % 2 == 0 ? weir::mailbox::keep : weir::mailbox::drop;
  if (n % 9 == 0) o.backoff = {.base = 5ms, .ceiling = 50ms, .jitter = weir::jitter::full};
  if (const int policy = n / 4 % 6; policy < 5) {
    o.capacity = 1 + n % 5;
    o.overflow = policies[policy];
    if (r.steady && o.overflow == weir::overflow::stop) o.overflow = weir::overflow::wait;
  }
  r.is_bounded = o.capacity != std::int64_t{weir::unbounded};
  r.drops_oldest = r.is_bounded && o.overflow == weir::overflow::drop_oldest;
  r.crash_on_error = o.on_error == weir::on_error::crash;
  r.scoped = n % 4 == 1;
  r.timed = n % 5 == 2;
  r.unlimited = n % 5 == 3;
  return o;
}

template <class S>
void tree::add_agent(S& to, int i, weir::restart kind) {
  record& r = of_.at(id_of(i));
  const weir::child_options options = options_of(r, kind);
  of_.refs[static_cast<std::size_t>(r.id)].emplace(add_to(to, r, options));
}

inline weir::supervisor_ref tree::add_group(const char* name, weir::strategy how, int from,
                                            int until, std::initializer_list<weir::restart> kinds) {
  weir::supervisor group({.name = name, .strategy = how, .max_restarts = plenty, .within = 1s});
  std::vector<std::string> names;
  for (int i = from; i < until; ++i) {
    add_agent(group, i, std::data(kinds)[static_cast<std::size_t>(i) % kinds.size()]);
    names.push_back(of_.at(id_of(i)).name);
  }
  const auto ref = root_.add_supervisor({.name = name}, std::move(group));
  groups_.emplace_back(ref, std::move(names));
  return ref;
}

// Gives up after its second restart; the one around it starts it again.
inline void tree::add_fragile(int from, int until) {
  weir::supervisor outer({.name = "outer", .max_restarts = plenty, .within = 1s});
  weir::supervisor inner({.name = "inner", .max_restarts = plenty, .within = 1s});
  weir::supervisor fragile({.name = "fragile", .max_restarts = 1, .within = 10s});
  for (int i = from; i < until; ++i) add_agent(fragile, i, weir::restart::permanent);
  (void)inner.add_supervisor({.name = "fragile"}, std::move(fragile));
  around_fragile_.emplace(outer.add_supervisor({.name = "inner"}, std::move(inner)));
  (void)root_.add_supervisor({.name = "outer"}, std::move(outer));
}

inline void tree::build() {
  using weir::strategy;
  constexpr auto permanent = weir::restart::permanent;
  constexpr auto transient = weir::restart::transient;
  constexpr auto temporary = weir::restart::temporary;
  constexpr const char* all_names[] = {"all 0", "all 1", "all 2", "all 3"};
  constexpr const char* rest_names[] = {"rest 0", "rest 1", "rest 2", "rest 3"};
  for (int i = 0; i < 100; ++i) of_.at(id_of(i)).steady = true;
  (void)add_group("steady", strategy::one_for_one, 0, 100, {permanent});
  groups_.clear();  // nobody administers these
  for (int g = 0; g < 4; ++g) {
    const int from = 100 + 20 * g;
    (void)add_group(all_names[g], strategy::one_for_all, from, from + 10, {permanent, transient});
    (void)add_group(rest_names[g], strategy::rest_for_one, from + 10, from + 20,
                    {permanent, transient, permanent, temporary});
  }
  (void)add_group("mixed", strategy::one_for_one, 180, 210, {transient, permanent});
  crowd_.emplace(add_group("crowd", strategy::dynamic, 210, 245, {transient, permanent}));
  add_fragile(245, 250);
  root_.add_task({.name = "pump", .backoff = {.base = 20ms, .factor = 1}}, []() -> task<> {
    co_await weir::sleep(100ms);
    throw refusal(0);
  });
}

// ------------------------------------------------------------------ administration

/// What a supervisor may say to somebody who does not know what its children are doing.
inline task<bool> tree::attempt(task<> what) {
  ++of_.seen.administered;
  try {
    co_await weir::with_timeout(200ms, std::move(what));
    co_return true;
  } catch (const weir::timeout_error&) {
  } catch (const refusal&) {  // of a constructor
  } catch (const weir::error& e) {
    constexpr weir::errc fine[] = {weir::errc::no_such_child, weir::errc::child_running,
                                   weir::errc::child_restarting, weir::errc::not_running,
                                   weir::errc::never_started};
    for (const weir::errc code : fine)
      if (e.code() == code) co_return false;
    of_.problem(std::string("a supervisor said: ") + e.what());
  }
  co_return false;
}

// A child that comes, ends and is followed by another one of the same name.
inline task<> tree::try_extra(weir::scope& watchers) {
  record& r = of_.add_record("extra " + std::to_string(index_) + "." + std::to_string(extra_));
  const auto kind = r.id % 2 == 0 ? weir::restart::temporary : weir::restart::transient;
  std::optional<weir::agent_ref<member>> made;
  try {
    made.emplace(add_to(*crowd_, r, options_of(r, kind)));
  } catch (const weir::error& e) {
    if (e.code() != weir::errc::not_running) of_.problem(e.what());
  }
  if (!made) {
    ++r.endings;
    co_return;
  }
  try {
    weir::registry::add(*made);
  } catch (const weir::error& e) {
    if (e.code() != weir::errc::agent_stopped) of_.problem(e.what());
  }
  (void)watchers.spawn(watch(r, *made));
  for (int i = dice_.below(4); i > 0; --i)
    if (made->cast(&member::work, stamp(), i) != weir::sent::full) ++r.mail;
  if (dice_.percent(30) && made->cast(&member::fail, stamp()) != weir::sent::full) ++r.mail;
  if (dice_.percent(30)) (void)made->stop();
  const bool ended = co_await attempt(crowd_->terminate_child(r.name));
  const bool deleted = co_await attempt(crowd_->delete_child(r.name));
  if (!deleted && !(ended && kind == weir::restart::temporary)) {
    ++extra_;  // the name may be taken
    co_return;
  }
  const auto end = co_await weir::settle(weir::with_timeout(10s, made->monitor()));
  if (end.is_error()) of_.problem("'" + r.name + "' was deleted and has not ended");
}

inline task<> tree::administer_once(weir::scope& watchers) {
  auto& [group, names] =
      groups_[static_cast<std::size_t>(dice_.below(static_cast<int>(groups_.size())))];
  const std::string& name =
      names[static_cast<std::size_t>(dice_.below(static_cast<int>(names.size())))];
  switch (dice_.below(8)) {
    case 0:
    case 1:
      co_await attempt(group.terminate_child(name));
      break;
    case 2:
    case 3:
    case 4:
      co_await attempt(group.restart_child(name));
      break;
    case 5:
      co_await attempt(root_.terminate_child(group.name()));
      break;
    case 6:
      co_await attempt(root_.restart_child(group.name()));
      break;
    default:
      co_await try_extra(watchers);
  }
}

// ------------------------------------------------------------------ what must hold

/// Whether nothing is on its way in this tree.
inline bool tree::is_quiet() {
  for (int i = 0; i < agents_per_tree; ++i) {
    const auto seen = of_.refs[static_cast<std::size_t>(id_of(i))]->info();
    const bool rests =
        seen.state == weir::agent_state::idle || seen.state == weir::agent_state::ended;
    if (!rests || seen.queued != 0) return false;
  }
  return true;
}

inline void tree::check() {
  for (int i = 0; i < agents_per_tree; ++i)
    check_agent(of_.at(id_of(i)), of_.refs[static_cast<std::size_t>(id_of(i))]->info());
  for (const weir::child_info& child : around_fragile_->which_children())
    of_.seen.escalations += static_cast<long>(child.restarts);
}

inline void tree::check_agent(record& r, const weir::agent_info& seen) {
  const auto require = [&](bool holds, const char* text) { of_.require(holds, r, text); };
  const bool alive = seen.state == weir::agent_state::idle;
  require(r.alive == (alive ? 1 : 0), "its state does not tell whether it lives");
  require(r.constructed - r.destroyed == r.alive, "objects are lost");
  const long handled = r.mail_handled + r.calls_handled + r.ticks_handled;
  require(static_cast<long>(seen.handled) == handled, "what was handled is not what was counted");
  const long skipped = static_cast<long>(seen.skipped);
  require(skipped <= r.calls_unrun, "more calls were skipped than left");
  const long dropped = static_cast<long>(seen.dropped);
  const long evicted = r.drops_oldest ? r.calls_full.load() : 0;
  const long evicted_at_most = evicted + (r.drops_oldest ? r.calls_left.load() : 0);
  const long lost = r.mail - r.mail_handled;
  require(dropped >= lost + evicted, "mail was lost without being counted");
  if (!r.timed) require(dropped <= lost + evicted_at_most, "more was dropped than was sent");
  require(static_cast<long>(seen.generation) >= r.constructed + r.failed_starts,
          "more objects than lives");
  if (!r.steady) return;
  require(alive, "a permanent child is not there");
  const long ends = r.crashes + r.failed_starts;
  require(static_cast<long>(seen.restarts) == ends, "restarts are not what ended its lives");
  if (!r.is_bounded && ends == 0) require(skipped >= r.calls_expired, "an expired call is missing");
}

// ------------------------------------------------------------------ all of it

/// Returns when all loops have come to this point.
inline task<> meet(world& w, std::size_t point) {
  ++w.arrived[point];
  while (w.arrived[point] < loop_count) co_await weir::sleep(5ms);
}

inline task<> come_to_rest(world& w, tree& t) {
  for (int quiet = 0, polls = 0; quiet < 3; ++polls) {
    co_await weir::sleep(20ms);
    quiet = t.is_quiet() ? quiet + 1 : 0;
    if (polls == 500) co_return w.problem("the agents do not come to rest");
  }
}

inline task<> play(world& w, tree& t, std::deque<client>& clients, weir::scope& watchers) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (client& c : clients) (void)s.spawn(c.run());
    (void)s.spawn(t.administer(watchers));
    co_await weir::sleep(w.span);
    w.over = true;
  });
}

/// What one loop does.
inline task<> share(world& w, int index) {
  tree t(w, index);
  std::deque<client> clients;
  for (int i = 0; i < clients_per_loop; ++i) clients.emplace_back(w, index * clients_per_loop + i);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    t.watch_all(s);
    (void)s.spawn(t.run());
    co_await come_to_rest(w, t);  // an error during the first start would end the tree
    co_await meet(w, 0);
    co_await play(w, t, clients, s);
    co_await meet(w, 1);
    co_await come_to_rest(w, t);
    co_await meet(w, 2);
    t.check();
    co_await meet(w, 3);
    co_await t.stop();
  });
}

inline void check_end(world& w) {
  for (record& r : w.records()) {
    w.require(r.alive == 0 && r.constructed == r.destroyed, r, "an object is left");
    w.require(r.endings == 1, r, "its end was not reported once");
    w.require(r.helpers == 0, r, "work of a life is left");
    w.require(!weir::registry::find<member>(r.name), r, "its name is not free again");
  }
  for (const token_ptr& t : w.unhandled())
    if (t->runs != 0) w.problem("handled, although its sender had left it");
  if (w.seen.asked != w.seen.concluded) w.problem("a call was not answered");
}

/// The program. What went wrong is in `w.problems()`.
inline task<> torture_all(world& w) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::loop_thread b(s, {.name = "b"});
    weir::loop_thread c(s, {.name = "c"});
    weir::loop_thread d(s, {.name = "d"});
    w.loops = {weir::this_loop(), b.ref(), c.ref(), d.ref()};
    co_await weir::with_scope([&](weir::scope& shares) -> task<> {
      for (int i = 0; i < loop_count; ++i)
        (void)shares.spawn_on(w.loops[static_cast<std::size_t>(i)],
                              [&w, i] { return share(w, i); });
      co_return;
    });
    check_end(w);
  });
}

}  // namespace torture
