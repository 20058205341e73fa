// SPDX-License-Identifier: MIT
// Several fibers on several loops apply random operations to a tree of supervisors concurrently.
#pragma once

#include <atomic>
#include <memory>

#include "supervisor_ledger.hpp"

namespace supervisor_test {

inline std::uint64_t below(std::uint64_t n) { return weir::random() % n; }

/// Time passes; on real threads only turns do.
inline task<> pause(bool simulated, std::uint64_t at_most) {
  const std::uint64_t n = below(at_most);
  if (simulated) co_await weir::sleep(n * 1ms);
  for (std::uint64_t i = 0; i < n && !simulated; ++i) co_await weir::yield();
}

/// A tree: two agents, a task, and a supervisor with two agents; on three loops.
class tree {
 public:
  tree(rig& r, const weir::supervisor_options& inner, const std::vector<weir::loop_ref>& loops,
       bool simulated)
      : rig_(r), book_(r.keep<ledger>()), loops_(loops), simulated_(simulated) {
    add(r.sup, 0);
    r.sup.add_task(kid("task", any_kind()), sleeper(r.log, "task"));
    weir::supervisor nested(inner);
    add(nested, 1);
    add(nested, 2);
    inner_.emplace(r.sup.add_supervisor(kid("inner", any_kind()), std::move(nested)));
    add(r.sup, 3);
  }

  /// What somebody on any loop may do.
  task<> disturb(int steps) {
    for (int i = 0; i < steps; ++i) {
      const hand_ref& ref = hands_[below(hands_.size())];
      switch (below(6)) {
        case 0:
          ref.cast(&hand::crash);
          break;
        case 1:
          (void)ref.stop();
          break;
        case 2:
          co_await ref.stop();
          break;
        case 3:
          (void)ref.cast_after(simulated_ ? 1ms : 0ms, &hand::crash);
          break;
        case 4:
          co_await pause(simulated_, 3);
          break;
        default:
          co_await call_once(ref, static_cast<int>(below(8)), answers);
          ++asked;
      }
    }
  }
  /// What somebody on the home loop may do.
  task<> administer(int steps) {
    for (int i = 0; i < steps; ++i) {
      const bool inside = below(2) == 0;
      const std::string names[] = {"hand0", "task", "inner", "hand3", "hand1", "hand2"};
      const std::string& name = inside ? names[4 + below(2)] : names[below(4)];
      if (below(4) == 0) co_await pause(simulated_, 3);
      if (inside) co_await one_request(*inner_, name);
      if (!inside) co_await one_request(rig_.sup, name);
      check_counts(rig_.sup);
      check_counts(*inner_);
    }
  }
  /// Everybody has ended, and has ended once.
  task<> check_end() {
    for (const hand_ref& ref : hands_) {
      (void)co_await ref.monitor();
      co_await ref.join();
      EXPECT_EQ(ref.cast(&hand::crash), sent::stopped);
    }
    for (const auto& n : book_.alive) EXPECT_EQ(n, 0);
    EXPECT_EQ(book_.overlaps, 0);
    EXPECT_EQ(book_.strangers, 0);
    EXPECT_EQ(answers.all(), asked);
    EXPECT_EQ(answers.wrong, 0);
  }

  answer_counts answers;
  std::atomic<int> asked{0};

 private:
  static restart any_kind() { return all_kinds[below(2)]; }

  void add(weir::supervisor& to, std::size_t id) {
    const std::string name = "hand" + std::to_string(id);
    auto o = kid(name, any_kind());
    o.on = loops_[below(loops_.size())];
    o.on_error = weir::on_error::crash;
    o.on_restart = below(2) == 0 ? weir::mailbox::drop : weir::mailbox::keep;
    if (simulated_) o.backoff.base = below(3) * 1ms;
    if (below(4) == 0) o.shutdown = weir::no_wait;
    if (below(4) == 0) o.shutdown = weir::no_limit;
    hands_.push_back(to.add<hand>(o, &book_, id, weir::loop_ref(o.on)));
  }
  template <class Supervisor>
  static task<> one_request(Supervisor& sup, std::string name) {
    std::error_code code;
    const auto what = below(8);
    if (what < 3) code = co_await code_after([&] { return sup.terminate_child(name); });
    if (what >= 3) code = co_await code_after([&] { return sup.restart_child(name); });
    const bool known = !code || code == errc::child_running || code == errc::child_restarting ||
                       code == errc::not_running || code == errc::no_such_child ||
                       code == errc::never_started;
    EXPECT_TRUE(known) << code.message();
  }
  template <class Supervisor>
  static void check_counts(Supervisor& sup) {
    std::size_t active = 0;
    for (const auto& child : sup.which_children())
      active += child.state == weir::child_state::running;
    const auto c = sup.count_children();
    EXPECT_EQ(c.active, active);
    EXPECT_EQ(c.specs, sup.which_children().size());
    EXPECT_EQ(c.specs, c.supervisors + c.workers);
  }

  rig& rig_;
  ledger& book_;
  std::vector<weir::loop_ref> loops_;
  const bool simulated_;
  std::vector<hand_ref> hands_;
  std::optional<weir::supervisor_ref> inner_;
};

/// One run; how it ends is chosen as well.
inline task<> one_run(rig& r, const weir::supervisor_options& inner,
                      const std::vector<weir::loop_ref>& loops, bool simulated) {
  auto& all = r.keep<tree>(r, inner, loops, simulated);
  r.running = r.home->spawn(drive(r.sup, r.result));
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(all.administer(8));
    for (const weir::loop_ref& where : loops) s.spawn_on(where, all.disturb(5));
    if (below(3) == 0) {
      co_await pause(simulated, 4);
      if (r.result.begun) r.running->cancel("enough");  // otherwise nobody would ever be started
    }
    co_await s.join();
  });
  const auto start = weir::now();
  if (!r.result.ended) co_await r.sup.stop();
  co_await weir::settle(*r.running);
  if (simulated) {
    EXPECT_EQ(ms_since(start), 0);
  }
  co_await all.check_end();
}

}  // namespace supervisor_test
