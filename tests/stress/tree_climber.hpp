// SPDX-License-Identifier: MIT
// How a tree of combinators is run, and what is checked: see tree_run.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "stress/tree_plan.hpp"

namespace fuzz {

using weir::errc;
using weir::task;
using number_t = std::int64_t;

struct snapped : std::runtime_error {
  explicit snapped(int node) : std::runtime_error("snapped " + std::to_string(node)), id(node) {}
  int id;
};

inline weir::local<int> label{0};

/// What an operation should see of its callers.
struct surroundings {
  int label = 0;
  weir::time_point deadline = weir::time_point::max();
  bool known = true;  // false: below something that hides it
};

inline bool contains(const tree& t, std::initializer_list<branch> kinds) {
  for (const branch b : kinds)
    if (t.what == b) return true;
  for (const tree& below : t.of)
    if (contains(below, kinds)) return true;
  return false;
}

struct notes {
  number_t value = -1;
  int inside = 0;
  int starts = 0;
  int taken = 0;  // children of a hedge
};

class climber;

/// An agent that evaluates trees.
class evaluator {
 public:
  explicit evaluator(climber* of) : of_(of) {}
  task<number_t> eval(const tree* t, surroundings e);

 private:
  climber* of_;
};

class climber {
 public:
  climber(const tree_plan& plan, bool threads)
      : plan_(plan), threads_(threads), notes_(static_cast<std::size_t>(plan.size)) {}

  task<> climb(weir::sim::world* w) {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::optional<weir::loop_thread> threads[loops];
      for (int i = 0; i < loops; ++i) {
        const char* const name = i == 0 ? "a" : "b";
        if (w == nullptr) threads[i].emplace(s, weir::loop_thread_options{.name = name});
        loops_[i] = w == nullptr ? weir::loop_ref(*threads[i]) : w->loop(name);
      }
      weir::pool first(s, shape(0));
      weir::pool second(s, shape(1));
      pools_[0] = &first;
      pools_[1] = &second;
      co_await strike(w);
      if (crashes()) co_await weir::sleep(1s);  // what a crashed loop has left elsewhere
      const auto closed = co_await weir::settle(close());
      if (closed.is_error()) judge(plan_.root, closed.error());
    });
    if (crashes()) co_return;
    for (const tree* t : every_node(plan_.root))
      if (note(*t).inside != 0) blame(*t, "is not left in the end");
    if (deferred_ != defers_) blame(plan_.root, "a defer did not run");
    if (token_.use_count() != 1) blame(plan_.root, "a job is not destroyed");
    if (plan_.what == blow::none || plan_.what == blow::cancel)
      if (ran_ < accepted_) blame(plan_.root, "an accepted job did not run");
  }

  task<number_t> eval(const tree& t, surroundings e) {
    const visit here(*this, t);
    std::exception_ptr error;
    try {
      note(t).value = co_await grow(t, e);
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {
      judge(t, error);
      std::rethrow_exception(error);
    }
    co_return note(t).value;
  }

  std::string problem() {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

 private:
  class visit {
   public:
    visit(climber& c, const tree& t) : of_(c), at_(t) {
      if (of_.note(t).inside++ != 0 && !of_.crashes()) of_.blame(t, "is entered twice");
      ++of_.note(t).starts;
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
      --of_.note(at_).inside;
      if (of_.crashes()) return;
      for (int id = at_.id + 1; id <= at_.last; ++id)
        if (of_.notes_[static_cast<std::size_t>(id)].inside != 0)
          of_.blame(at_, "has ended before " + std::to_string(id));
    }

   private:
    climber& of_;
    const tree& at_;
  };

  weir::pool_options shape(int i) const {
    return {
        .name = i == 0 ? "p0" : "p1", .workers = plan_.workers[i], .queue_size = plan_.queue[i]};
  }
  bool crashes() const {
    return plan_.what == blow::crash_loop || plan_.what == blow::crash_worker;
  }
  bool pools_end() const {
    return plan_.what == blow::cancel_pool || plan_.what == blow::close_pool || crashes();
  }
  notes& note(const tree& t) { return notes_[static_cast<std::size_t>(t.id)]; }
  static std::vector<const tree*> every_node(const tree& t) {
    std::vector<const tree*> all{&t};
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const tree& below : all[i]->of) all.push_back(&below);
    return all;
  }
  void blame(const tree& t, const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) problem_ = std::to_string(t.id) + ": " + what;
  }

  // ---------------------------------------------------------------- the whole

  task<> strike(weir::sim::world* w) {
    co_await weir::with_scope({.failure = weir::failure::isolate}, [&](weir::scope& s) -> task<> {
      auto root = s.spawn([&] { return eval(plan_.root, {}); });
      if (plan_.what != blow::none) co_await weir::sleep(1us * plan_.when);
      const auto place = static_cast<std::size_t>(plan_.where);
      if (plan_.what == blow::cancel) root.cancel("struck");
      if (plan_.what == blow::cancel_pool) pools_[place]->cancel();
      if (plan_.what == blow::close_pool) co_await pools_[place]->close();
      if (plan_.what == blow::crash_loop) w->crash(place == 0 ? "a" : "b");
      if (plan_.what == blow::crash_worker) w->crash(place == 0 ? "p0-0" : "p1-0");
      const auto end = co_await weir::settle(root);
      if (end.is_value()) expect(plan_.root, end.value());
      if (end.is_cancelled() && plan_.what != blow::cancel && !may_cancel(plan_.root))
        blame(plan_.root, "is cancelled by nobody");
    });
  }
  task<> close() {
    for (int i = 0; i < pools; ++i) {
      if (plan_.what == blow::close_pool && plan_.where == i) continue;
      co_await pools_[i]->close();
    }
  }

  // ---------------------------------------------------------------- what is expected

  number_t expect(const tree& t, number_t value) {
    if (note(t).value != value)
      blame(t, "its caller has " + std::to_string(value) + " instead of " +
                   std::to_string(note(t).value));
    return value;
  }
  number_t expect_any(const tree& t, number_t value) {
    for (const tree& below : t.of)
      if (note(below).value == value) return value;
    blame(t, "its value is of nobody below");
    return value;
  }
  bool may_cancel(const tree& t) const {
    return contains(t, {branch::cancelled_child, branch::token}) ||
           (pools_end() && contains(t, {branch::run, branch::submits}));
  }
  void judge(const tree& t, const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const snapped& e) {
      if (e.id < t.id || e.id > t.last) blame(t, "has the error of " + std::to_string(e.id));
    } catch (const weir::error_group& e) {
      for (const auto& one : e.errors()) judge(t, one);
    } catch (const weir::error& e) {
      const bool pool = contains(t, {branch::run, branch::submits});
      const bool expected =
          (e.code() == errc::timeout && contains(t, {branch::timeout, branch::submits})) ||
          (e.code() == errc::cancelled && may_cancel(t)) ||
          (e.code() == errc::pool_closed && pool && pools_end()) ||
          (e.code() == errc::abandoned && contains(t, {branch::answered_by_a_job}) &&
           pools_end()) ||
          (e.code() == errc::loop_gone && crashes());
      if (!expected) blame(t, std::string("unexpected: ") + e.what());
    } catch (const std::exception& e) {
      blame(t, std::string("unexpected: ") + e.what());
    }
  }
  void look_around(const tree& t, const surroundings& e) {
    if (!e.known) return;
    if (label.get() != e.label) blame(t, "has the locals of another");
    const auto seen = weir::this_context().deadline().value_or(weir::time_point::max());
    if (threads_ ? (seen == weir::time_point::max()) != (e.deadline == weir::time_point::max())
                 : seen != e.deadline)
      blame(t, "has the deadline of another");
  }
  /// What was started at `start` and limited to `d` is over.
  void expect_prompt(const tree& t, weir::time_point start, weir::duration d) {
    if (!threads_ && t.prompt && weir::now() > start + d) blame(t, "was not ended in time");
  }
  surroundings hidden(surroundings e) const {
    e.known = false;
    return e;
  }
  auto below(const tree& t, surroundings e) {
    return [this, &t, e] { return eval(t.of.front(), e); };
  }
  auto child(const tree& t, std::size_t i, surroundings e) {
    return [this, &t, i, e] { return eval(t.of[i], e); };
  }
  std::vector<task<number_t>> children(const tree& t, surroundings e) {
    std::vector<task<number_t>> all;
    for (const tree& one : t.of) all.push_back(eval(one, e));
    return all;
  }

  // ---------------------------------------------------------------- branches

  task<number_t> grow(const tree& t, surroundings e);
  task<number_t> grow_more(const tree& t, surroundings e);
  number_t fresh(const tree& t);
  task<number_t> at_once(const tree& t);
  task<number_t> sleeps(const tree& t);
  task<number_t> yields(const tree& t);
  task<number_t> blocks(const tree& t, surroundings e);
  task<number_t> answered_by_a_job(const tree& t);
  task<number_t> submits(const tree& t);
  task<number_t> on(const tree& t, surroundings e);
  task<number_t> run(const tree& t, surroundings e);
  task<number_t> timeout(const tree& t, surroundings e);
  task<number_t> retry(const tree& t, surroundings e);
  task<number_t> settle(const tree& t, surroundings e);
  task<number_t> shield(const tree& t, surroundings e);
  task<number_t> local(const tree& t, surroundings e);
  task<number_t> cancelled_child(const tree& t, surroundings e);
  task<number_t> token(const tree& t, surroundings e);
  task<number_t> deferred(const tree& t, surroundings e);
  task<number_t> agent(const tree& t, surroundings e);
  number_t sum(const tree& t, const std::vector<number_t>& values);
  task<number_t> all(const tree& t, surroundings e);
  task<number_t> all_range(const tree& t, surroundings e);
  task<number_t> parallel_map(const tree& t, surroundings e);
  task<number_t> race(const tree& t, surroundings e);
  task<number_t> any(const tree& t, surroundings e);
  task<number_t> hedge(const tree& t, surroundings e);
  task<number_t> scope(const tree& t, surroundings e);
  task<number_t> group(const tree& t, surroundings e);
  task<number_t> map_async(const tree& t, surroundings e);

  const tree_plan& plan_;
  const bool threads_;
  std::vector<notes> notes_;
  weir::loop_ref loops_[loops];
  weir::pool* pools_[pools] = {};
  std::shared_ptr<int> token_ = std::make_shared<int>(0);
  std::atomic<int> accepted_ = 0;
  std::atomic<int> ran_ = 0;
  std::atomic<int> defers_ = 0;
  std::atomic<int> deferred_ = 0;
  std::mutex mutex_;
  std::string problem_;
};

}  // namespace fuzz
