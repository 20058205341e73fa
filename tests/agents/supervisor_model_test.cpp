// SPDX-License-Identifier: MIT
// supervisor against a simple model: random programs of crashes, stops, administration and passing
// time, compared after each step: journal, states, counts, answers and how run() ended.
#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "supervisor_support.hpp"

using namespace supervisor_test;
using weir::auto_shutdown;

namespace {

using failing_starts = std::map<std::string, int>;  // by name: how many of the next ones fail

/// An agent whose next starts fail as the table says.
class actor {
 public:
  actor(journal* log, failing_starts* failing, std::string name)
      : log_(log), name_(std::move(name)) {
    int& left = (*failing)[name_];
    log_->add((left > 0 ? "!" : "+") + name_);
    if (left > 0) throw boom(left--);
  }
  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;
  ~actor() { log_->add("-" + name_); }
  void crash() { throw boom(0); }

 private:
  journal* log_;
  std::string name_;
};

/// The rules of the page, written down in the simplest way.
class supervisor_model {
 public:
  struct child {
    std::string name;
    restart kind;
    bool significant;
    bool running;
  };

  explicit supervisor_model(const weir::supervisor_options& o) : options(o) {}

  std::error_code add(const child& c) {
    const bool bad = c.significant && (options.auto_shutdown == auto_shutdown::never ||
                                       c.kind == restart::permanent);
    if (bad || find(c.name) >= 0) return errc::invalid_argument;
    children.push_back(c);
    const int i = size() - 1;
    if (started && !start(i)) ended_by_error(i);
    return {};
  }
  void run() {
    started = true;
    for (int i = 0; i < size(); ++i) (void)start(i);
  }
  void ends(const std::string& name, bool crash) {
    const int i = find(name);
    leave(i);
    if (crash) return ended_by_error(i);
    if (at(i).kind == restart::permanent) return restart_from(i);
    const bool counts = at(i).significant;
    if (forgets(i)) forget(i);
    if (counts) check_significant();
  }
  std::error_code terminate(const std::string& name) {
    const int i = find(name);
    if (i < 0) return errc::no_such_child;
    if (!at(i).running) return {};
    leave(i);
    if (forgets(i)) forget(i);
    return {};
  }
  /// boom(n) is answered as n, everything else by its code.
  std::error_code restart_by_hand(const std::string& name, bool& failed) {
    const int i = find(name);
    failed = false;
    if (i < 0) return errc::no_such_child;
    if (at(i).running) return errc::child_running;
    failed = !start(i);
    return {};
  }
  std::error_code remove(const std::string& name) {
    const int i = find(name);
    if (i < 0) return errc::no_such_child;
    if (at(i).running) return errc::child_running;
    forget(i);
    return {};
  }
  void stop() {
    stop_from(0);
    outcome = "stopped";
  }

  /// As children_of prints them.
  std::string text() const {
    std::string all;
    for (int i = size() - 1; i >= 0; --i) {
      if (!all.empty()) all += ' ';
      const child& c = children[static_cast<std::size_t>(i)];
      all += c.name + (c.running ? ":running" : ":stopped");
    }
    return all;
  }
  int find(const std::string& name) const {
    for (int i = 0; i < size(); ++i)
      if (children[static_cast<std::size_t>(i)].name == name) return i;
    return -1;
  }
  bool runs(const std::string& name) {
    const int i = find(name);
    return i >= 0 && at(i).running;
  }
  bool significant(const std::string& name) {
    const int i = find(name);
    return i >= 0 && at(i).significant;
  }

  weir::supervisor_options options;
  std::vector<child> children;
  failing_starts failing;
  journal log;
  bool started = false;
  std::string outcome;  // of run(): empty, stopped, shut down, gave up

 private:
  int size() const { return static_cast<int>(children.size()); }
  child& at(int i) { return children[static_cast<std::size_t>(i)]; }
  void forget(int i) { children.erase(children.begin() + i); }
  bool forgets(int i) {
    return at(i).kind == restart::temporary || options.strategy == strategy::dynamic;
  }

  bool start(int i) {
    int& left = failing[at(i).name];
    at(i).running = left == 0;
    log.add((left > 0 ? "!" : "+") + at(i).name);
    if (left > 0) --left;
    return at(i).running;
  }
  void leave(int i) {
    log.add("-" + at(i).name);
    at(i).running = false;
  }
  void ended_by_error(int i) {
    if (at(i).kind != restart::temporary) return restart_from(i);
    const bool counts = at(i).significant;
    forget(i);
    if (counts) check_significant();
  }
  void check_significant() {
    bool any = false;
    for (const child& c : children) any = any || (c.significant && c.running);
    if (any && options.auto_shutdown == auto_shutdown::all_significant) return;
    stop_from(0);
    outcome = "shut down";
  }
  /// Stops all from the last to this one; temporary ones are forgotten.
  void stop_from(int first) {
    for (int i = size() - 1; i >= first; --i) {
      if (!at(i).running) continue;
      leave(i);
      if (at(i).kind == restart::temporary) forget(i);
    }
  }
  bool charge() {
    const weir::time_point now = weir::now();
    while (!window_.empty() && window_.front() <= now - options.within) window_.pop_front();
    if (static_cast<long>(window_.size()) >= static_cast<long>(options.max_restarts)) return false;
    window_.push_back(now);
    return true;
  }
  void restart_from(int i) {
    const bool all = options.strategy == strategy::one_for_all;
    const bool one = !all && options.strategy != strategy::rest_for_one;
    while (charge()) {
      if (one && start(i)) return;
      if (one) continue;
      // What is forgotten stands before i only if all are stopped; then i starts at 0 anyway.
      if (all) i = 0;
      stop_from(i);
      while (i < size() && start(i)) ++i;
      if (i == size()) return;
    }
    stop_from(0);
    outcome = "gave up";
  }

  std::deque<weir::time_point> window_;
};

/// A supervisor beside its model.
class supervisor_comparison {
 public:
  supervisor_comparison(rig& r, unsigned seed, const weir::supervisor_options& options)
      : rig_(r), random_(seed), model_(options), failing_(r.keep<failing_starts>()) {}

  task<> run(int steps) {
    for (int i = 0; i < 3; ++i) add();
    co_await rig_.start();
    model_.run();
    compare("the start");
    for (int i = 0; i < steps && model_.outcome.empty(); ++i) {
      const std::string what = co_await one_step();
      co_await settle();
      compare("step " + std::to_string(i) + ", " + what);
      if (::testing::Test::HasFailure()) co_return;
    }
    if (!model_.outcome.empty()) co_return;
    model_.stop();
    co_await rig_.sup.stop();
    co_await settle();
    compare("the stop");
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::string any_name() { return std::string(1, static_cast<char>('a' + below(5))); }

  task<std::string> one_step() {
    const int choice = below(100);
    const std::string name = any_name();
    if (choice < 40) co_return end(name, choice < 28);
    if (choice < 55) co_return add();
    if (choice < 65) co_return fail_next(name);
    if (choice < 80) {
      co_await weir::sleep(below(20) * 1ms);
      co_return "time passes";
    }
    const std::string what = co_await administer(name, choice);
    co_return what;
  }
  std::string end(const std::string& name, bool crash) {
    if (!model_.runs(name)) return "nothing";
    if (crash) refs_.at(name).cast(&actor::crash);
    if (!crash) (void)refs_.at(name).stop();
    model_.ends(name, crash);
    return (crash ? "crash of " : "end of ") + name;
  }
  std::string add() {
    const std::string name = any_name();
    supervisor_model::child c{name, all_kinds[below(3)], failing_[name] == 0 && below(3) == 0,
                              false};
    auto o = kid(name, c.kind);
    o.significant = c.significant;
    const auto error = thrown_by(
        [&] { refs_.insert_or_assign(name, rig_.sup.add<actor>(o, &rig_.log, &failing_, name)); });
    EXPECT_EQ(code_of(error), model_.add(c)) << "add of " << name;
    return "add of " + text_of(c.kind) + " " + name;
  }
  std::string fail_next(const std::string& name) {
    if (model_.significant(name) || !model_.started) return "nothing";
    failing_[name] = model_.failing[name] = below(3);
    return "failing starts of " + name;
  }
  task<std::string> administer(std::string name, int choice) {
    if (choice < 87) {
      const auto code = co_await code_after([&] { return rig_.sup.terminate_child(name); });
      EXPECT_EQ(code, model_.terminate(name));
      co_return "terminate " + name;
    }
    if (choice < 94) {
      bool failed = false;
      const auto error = co_await attempt([&] { return rig_.sup.restart_child(name); });
      EXPECT_EQ(code_of(error), model_.restart_by_hand(name, failed));
      EXPECT_EQ(boom_of(error) >= 0, failed);
      co_return "restart " + name;
    }
    const auto code = co_await code_after([&] { return rig_.sup.delete_child(name); });
    EXPECT_EQ(code, model_.remove(name));
    co_return "delete " + name;
  }

  void compare(const std::string& when) {
    std::string real = rig_.log.take(), expected = model_.log.take();
    if (model_.options.strategy == strategy::dynamic && !model_.outcome.empty()) {
      std::sort(real.begin(), real.end());  // they are stopped all at once
      std::sort(expected.begin(), expected.end());
    }
    EXPECT_EQ(real, expected) << "after " << when;
    const run_result& r = rig_.result;
    std::string outcome;
    if (r.clean) outcome = model_.outcome == "stopped" ? "stopped" : "shut down";
    if (holds<weir::restart_limit_error>(r.error)) outcome = "gave up";
    EXPECT_EQ(outcome, model_.outcome) << "after " << when;
    EXPECT_EQ(r.ended, !model_.outcome.empty()) << "after " << when;
    if (!model_.outcome.empty()) return;
    EXPECT_EQ(children_of(rig_.sup), model_.text()) << "after " << when;
    EXPECT_EQ(static_cast<std::size_t>(rig_.sup.count_children().specs), model_.children.size());
  }

  rig& rig_;
  std::mt19937 random_;
  supervisor_model model_;
  failing_starts& failing_;
  std::map<std::string, weir::agent_ref<actor>> refs_;
};

weir::supervisor_options options_for(unsigned seed) {
  constexpr auto_shutdown modes[] = {auto_shutdown::never, auto_shutdown::any_significant,
                                     auto_shutdown::all_significant};
  auto o = options_of(all_strategies[seed % 4], 1 + static_cast<int>(seed / 4 % 6), 30ms);
  if (o.strategy != strategy::dynamic) o.auto_shutdown = modes[seed / 24 % 3];
  return o;
}

}  // namespace

TEST(supervisor_model, random_programs_agree_with_a_simple_model) {
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto options = options_for(seed);
    simulate(options, [&](rig& r) -> task<> {
      supervisor_comparison both(r, seed, options);
      co_await both.run(60);
    });
    if (HasFailure()) return;
  }
}

TEST(supervisor_model, random_programs_agree_with_it_in_every_order) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const auto options = options_for(seed * 13);
    in_every_order(options, [&](rig& r) -> task<> {
      supervisor_comparison both(r, static_cast<unsigned>(weir::random()), options);
      co_await both.run(15);
    });
  }
}
