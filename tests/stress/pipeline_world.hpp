// SPDX-License-Identifier: MIT
// What one run of a random pipeline uses, and what it found out.
#pragma once

#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weir/weir.hpp>

#include "stress/item.hpp"
#include "stress/pipeline_plan.hpp"
#include "stress/pipeline_values.hpp"

namespace fuzz {

using weir::task;
using items = weir::any_stream<item>;

inline weir::duration ms(int n) { return std::chrono::milliseconds(n); }

/// The agent that generators and mapped functions ask.
class helper {
 public:
  int echo(int v) { return v; }
  task<int> slow(int v, int ms_long) {
    co_await weir::sleep(ms(ms_long));
    co_return v;
  }
  void note(int) {}
};

/// Counters of the guards in all generators of a run.
struct visits {
  int entered = 0;
  int left = 0;
  int succeeded = 0;  // scope_success ran
  int failed = 0;     // scope_failure ran
  int completed = 0;  // the body came to its end
  int without_reason = 0;
};

class world {
 public:
  world(const pipeline_plan& p, ledger& l) : plan(p), counted_items(l) {}
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  void problem(std::string text) { problems_.push_back(std::move(text)); }
  const std::vector<std::string>& problems() const { return problems_; }
  /// A child beside the consumer, which is cancelled when the consumer is done.
  void beside(task<> work);
  /// Ends all that is beside the consumer.
  void stop();
  /// What a shared stream still pulls finds closed queues.
  bool stopped() const { return stopped_; }
  /// What must hold when everything has ended.
  void check_end();
  /// What the destructor of a hostile item does.
  void spring();

  const pipeline_plan& plan;
  ledger& counted_items;
  visits generators;
  int finally_entered = 0;
  weir::scope* home = nullptr;
  std::optional<weir::agent_ref<helper>> agent;
  std::optional<weir::loop_ref> other;
  std::deque<weir::queue<item>> queues;
  std::deque<weir::queue<int>> numbers;
  std::deque<weir::receiver<item>> receivers;
  std::deque<weir::broadcast<item>> broadcasts;
  std::deque<weir::replay<item>> replays;
  std::deque<weir::state<item>> states;
  std::deque<weir::subscription<item>> subscriptions;
  std::deque<weir::shared_stream<item>> shared;
  std::deque<weir::event> events;
  std::deque<weir::mutex> mutexes;
  std::deque<weir::counting_governor> counting;
  std::deque<weir::shared_governor> shared_permits;
  std::deque<weir::rate_governor> rates;
  std::deque<weir::adaptive_governor> adaptive;
  std::deque<weir::any_governor> erased;

 private:
  std::vector<std::string> problems_;
  std::vector<weir::child<void>> beside_;
  int springs_ = 0;
  bool stopped_ = false;
};

/// Stands in each generator and checks how it is left.
class visit {
 public:
  explicit visit(visits& v) noexcept : v_(v), errors_(std::uncaught_exceptions()) { ++v_.entered; }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  ~visit() {
    ++v_.left;
    if (completed_) ++v_.completed;
    const bool thrown = std::uncaught_exceptions() > errors_;
    if (!completed_ && !thrown && weir::unwinding() == nullptr) ++v_.without_reason;
  }
  void complete() noexcept { completed_ = true; }

 private:
  visits& v_;
  int errors_;
  bool completed_ = false;
};

/// Awaits what the step says.
task<> perform(world& w, step s);
/// A generator that sleeps before each of its items.
weir::stream<item> ticking(world& w, int first, int count, int ms_each);

items build(world& w, const node& n);
items build_source(world& w, const node& n);
items build_transform(world& w, const node& n, items in);
items build_concurrent(world& w, const node& n, items in);
items build_batch(world& w, const node& n, items in);
items build_rate(world& w, const node& n, items in);
items build_around(world& w, const node& n, items in);
items build_joined(world& w, const node& n);

/// Calls `with` with a number or a governor, as the plan says. Governors of the world are checked
/// at the end.
template <class F>
auto permitted(world& w, permits by, int width, F with) {
  switch (by) {
    case permits::number:
      return with(width);
    case permits::counting:
      return with(w.counting.emplace_back(width));
    case permits::shared:
      w.erased.emplace_back(w.shared_permits.emplace_back(width));
      return with(w.erased.back());
    case permits::rate:
      w.erased.emplace_back(
          w.rates.emplace_back(weir::rate_options{.per_second = 1000, .burst = width}));
      return with(w.erased.back());
    case permits::adaptive:
      w.erased.emplace_back(w.adaptive.emplace_back(
          weir::adaptive_options{.initial = width, .min = 1, .max = 2 * width}));
      return with(w.erased.back());
    default:
      w.erased.emplace_back(w.counting.emplace_back(width));
      return with(w.erased.back());
  }
}

/// What the consumer saw.
struct findings {
  std::vector<int> got;
  long count = -1;         // of items, if that is all that is known
  bool ended = false;      // the end was seen
  bool unordered = false;  // items were used side by side
  bool only_some = false;  // `got` has but some of the items
  std::exception_ptr error;
};

task<> consume(world& w, const usage& use, findings& found);
/// The ways of consumption that are one sink.
task<> consume_by_sink(world& w, const usage& use, findings& found, items stream);
task<> consume_as_service(world& w, const usage& use, findings& found, items stream);
task<> consume_shared(world& w, const usage& use, findings& found, items stream);

/// Runs the program of a plan; what went wrong, or nothing.
std::string run_pipeline(const pipeline_plan& plan);

}  // namespace fuzz
