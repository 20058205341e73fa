// SPDX-License-Identifier: MIT
// What the tests of supervisors share: agents and tasks that write down their lives, a rig that
// runs one supervisor and checks that every life has ended, and short texts for states and counts.
#pragma once

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/test_support.hpp"

namespace supervisor_test {

using namespace test_support;
using weir::ending;
using weir::errc;
using weir::restart;
using weir::sent;
using weir::strategy;
using weir::task;

inline constexpr strategy static_strategies[] = {strategy::one_for_one, strategy::one_for_all,
                                                 strategy::rest_for_one};
inline constexpr strategy all_strategies[] = {strategy::one_for_one, strategy::one_for_all,
                                              strategy::rest_for_one, strategy::dynamic};
inline constexpr restart all_kinds[] = {restart::permanent, restart::transient, restart::temporary};

inline std::string text_of(strategy s) {
  constexpr const char* names[] = {"one_for_one", "one_for_all", "rest_for_one", "dynamic"};
  for (std::size_t i = 0; i < std::size(all_strategies); ++i)
    if (all_strategies[i] == s) return names[i];
  return "?";
}
inline std::string text_of(restart r) {
  return r == restart::permanent   ? "permanent"
         : r == restart::transient ? "transient"
                                   : "temporary";
}

/// What happened, in order: "+a" a life of a begins, "-a" it has ended, "!a" it could not begin.
class journal {
 public:
  void add(std::string entry) { entries_.push_back(std::move(entry)); }
  long count(std::string_view entry) const { return counted(entries_, entry); }
  /// Entries that begin with this character.
  long lives(char first) const {
    long n = 0;
    for (const std::string& e : entries_) n += e.front() == first;
    return n;
  }
  std::string text() const {
    std::string all;
    for (const std::string& e : entries_) {
      if (!all.empty()) all += ' ';
      all += e;
    }
    return all;
  }
  /// The text so far, which is then forgotten; the lives are still counted.
  std::string take() {
    std::string all = text();
    begun_ += lives('+');
    ended_ += lives('-');
    entries_.clear();
    return all;
  }
  long begun() const { return begun_ + lives('+'); }
  long ended() const { return ended_ + lives('-'); }

 private:
  text_log entries_;
  long begun_ = 0;
  long ended_ = 0;
};

/// An agent that writes down its life.
class worker {
 public:
  worker(journal* log, std::string name) : log_(log), name_(std::move(name)) {
    log_->add("+" + name_);
  }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker() { log_->add("-" + name_); }

  void crash() { throw boom(1); }
  void crash_with(int n) { throw boom(n); }
  task<> crash_after(weir::duration d) {
    co_await weir::sleep(d);
    throw boom(2);
  }
  /// Ends as by stop().
  void leave() { (void)weir::self<worker>().stop(); }
  void note(int n) {
    log_->add(name_ + std::to_string(n));
    ++seen_;
  }
  int seen() const { return seen_; }
  task<> nap(weir::duration d) { co_await weir::sleep(d); }
  /// As nap, but no cancellation ends it.
  task<> stubborn(weir::duration d) {
    co_await weir::shield([&]() -> task<> { co_await weir::sleep(d); });
  }

 private:
  journal* log_;
  std::string name_;
  int seen_ = 0;
};
using worker_ref = weir::agent_ref<worker>;

/// Its starts from `first_bad` to `last_bad` fail with boom(1000 + number of the start).
struct start_plan {
  journal* log;
  std::string name;
  int first_bad = 2;
  int last_bad = 1'000'000;
  int starts = 0;
};
class flaky {
 public:
  explicit flaky(start_plan* plan) : plan_(plan) {
    const int n = ++plan_->starts;
    if (n >= plan_->first_bad && n <= plan_->last_bad) {
      plan_->log->add("!" + plan_->name);
      throw boom(1000 + n);
    }
    plan_->log->add("+" + plan_->name);
  }
  flaky(const flaky&) = delete;
  flaky& operator=(const flaky&) = delete;
  ~flaky() { plan_->log->add("-" + plan_->name); }
  void crash() { throw boom(1); }
  int start() const { return plan_->starts; }

 private:
  start_plan* plan_;
};

/// How run() ended.
struct run_result {
  bool begun = false;
  bool ended = false;
  bool clean = false;
  std::exception_ptr error;
  weir::time_point at{};
};

inline task<> drive(weir::supervisor& sup, run_result& result) {
  const auto at_the_end = weir::scope_exit([&] {
    result.ended = true;
    result.at = weir::now();
  });
  result.begun = true;
  try {
    co_await sup.run();
    result.clean = true;
  } catch (...) {
    result.error = std::current_exception();
  }
}

inline weir::supervisor_options options_of(strategy how, int max_restarts = 3,
                                           weir::duration within = 5s) {
  weir::supervisor_options o;
  o.name = "sup";
  o.strategy = how;
  o.max_restarts = max_restarts;
  o.within = within;
  return o;
}
/// Of a supervisor that never gives up.
inline weir::supervisor_options patient(strategy how = strategy::one_for_one) {
  return options_of(how, 1'000'000, 1h);
}
/// REQUIRES: `name` lives until the options were used.
inline weir::child_options kid(std::string_view name, restart how = restart::permanent) {
  weir::child_options o;
  o.name = name;
  o.restart = how;
  return o;
}

/// "specs active supervisors workers"
template <class Supervisor>
std::string counts(Supervisor& sup) {
  const auto c = sup.count_children();
  return std::to_string(c.specs) + " " + std::to_string(c.active) + " " +
         std::to_string(c.supervisors) + " " + std::to_string(c.workers);
}

inline std::string text_of(weir::child_state s) {
  switch (s) {
    case weir::child_state::running:
      return "running";
    case weir::child_state::restarting:
      return "restarting";
    case weir::child_state::stopped:
      return "stopped";
    case weir::child_state::zombie:
      return "zombie";
  }
  return "?";
}
template <class Supervisor>
std::string state_of(Supervisor& sup, std::string_view name) {
  for (const auto& child : sup.which_children())
    if (std::string_view(child.name) == name) return text_of(child.state);
  return "none";
}
template <class Supervisor>
long restarts_of(Supervisor& sup, std::string_view name) {
  for (const auto& child : sup.which_children())
    if (std::string_view(child.name) == name) return static_cast<long>(child.restarts);
  return -1;
}
/// "name:state" of every child, newest first.
template <class Supervisor>
std::string children_of(Supervisor& sup) {
  std::string all;
  for (const auto& child : sup.which_children()) {
    if (!all.empty()) all += ' ';
    all += std::string(child.name) + ":" + text_of(child.state);
  }
  return all;
}

/// The numbers of the booms in an error group, -1 for anything else; empty for no group.
inline std::vector<int> booms_in(const std::exception_ptr& error) {
  std::vector<int> all;
  try {
    if (error) std::rethrow_exception(error);
  } catch (const weir::error_group& group) {
    for (const auto& e : group.errors()) all.push_back(boom_of(e));
  } catch (...) {
  }
  return all;
}

/// Long enough for everything that can happen without time passing.
inline auto settle() { return weir::sleep(1ms); }

/// A task child that waits for ever and writes down its life.
inline auto sleeper(journal& log, std::string name) {
  return [&log, name]() -> task<> {
    log.add("+" + name);
    const auto at_the_end = weir::scope_exit([&] { log.add("-" + name); });
    co_await weir::sleep(10000h);
  };
}
/// The same, but when it is cancelled its cleanup takes `d`.
inline auto slow_sleeper(journal& log, std::string name, weir::duration d) {
  return [&log, name, d]() -> task<> {
    log.add("+" + name);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.defer([&]() -> task<> {
        co_await weir::sleep(d);
        log.add("-" + name);
      });
      co_await weir::sleep(10000h);
    });
  };
}

/// One supervisor, its journal and what became of run().
class rig {
 public:
  explicit rig(const weir::supervisor_options& options) : sup(options) {}

  worker_ref add(std::string name, restart how = restart::permanent) {
    return add(kid(name, how), name);
  }
  worker_ref add(const weir::child_options& options, const std::string& name) {
    return sup.add<worker>(options, &log, name);
  }
  /// Starts the supervisor and waits until everything has come to rest.
  task<> start() {
    running = home->spawn(drive(sup, result));
    co_await settle();
  }
  task<> finish() {
    if (!running) co_return;
    if (!result.ended) co_await sup.stop();
    co_await weir::settle(*running);
  }

  /// An object that lives as long as the children, which may use it.
  template <class T, class... Args>
  T& keep(Args&&... args) {
    std::shared_ptr<T> object(new T{std::forward<Args>(args)...});
    kept_.push_back(object);
    return *object;
  }

 private:
  std::vector<std::shared_ptr<void>> kept_;

 public:
  weir::supervisor sup;
  journal log;
  run_result result;
  weir::scope* home = nullptr;
  std::optional<weir::child<void>> running;
};

/// Runs `body(rig&)`; then the supervisor is stopped, unless it has ended, and nobody may be alive.
template <class F>
task<> with_rig(const weir::supervisor_options& options, F& body) {
  rig r(options);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    r.home = &s;
    co_await body(r);
    co_await r.finish();
  });
  EXPECT_EQ(r.log.begun(), r.log.ended()) << r.log.text();
}

/// Once, on virtual time, in the order of production.
template <class F>
void simulate(const weir::supervisor_options& options, F body) {
  weir::sim::run({.seed = 1}, [&]() -> task<> { co_await with_rig(options, body); });
}

/// In many orders that an adversary chooses.
template <class F>
void in_every_order(const weir::supervisor_options& options, F body,
                    std::source_location site = std::source_location::current()) {
  for_each_order(
      [&](weir::sim::world& w) { w.run([&]() -> task<> { co_await with_rig(options, body); }); },
      site);
}

}  // namespace supervisor_test
