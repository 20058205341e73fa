// SPDX-License-Identifier: MIT
// Hostile items in the mailbox of an agent, and in the jobs of a pool.
#include <utility>

#include "stress/hostile_targets.hpp"

namespace fuzz {

namespace {

/// Keeps the last item that it was sent.
class keeper {
 public:
  void keep(item i) { last_ = std::move(i); }
  task<int> swap(item i) {
    co_await weir::yield();
    std::swap(last_, i);
    co_return i.value();
  }

 private:
  item last_{0};
};

class mailbox_target final : public target {
 public:
  mailbox_target(const hostile_plan& p, weir::scope& s)
      : agent_(weir::spawn_agent<keeper>(
            s, {.name = "keeper", .capacity = p.capacity, .overflow = policy_of(p)})) {}
  void act(int n) override {
    switch (n % 16) {
      case 0:
        (void)agent_.info();
        return;
      case 1:
        (void)agent_.cast_after(1ms, &keeper::keep, item(n));
        return;
      case 2:
        if (n % 5 == 0) (void)agent_.stop();
        return;
      default:
        (void)agent_.cast(&keeper::keep, item(n));
        return;
    }
  }
  task<> wait(int n) override {
    if (n % 2 == 0) {
      (void)co_await weir::with_timeout(1ms, agent_.call(&keeper::swap, item(n)));
    } else {
      co_await weir::with_timeout(1ms, agent_.send(&keeper::keep, item(n)));
    }
  }

 private:
  static weir::overflow policy_of(const hostile_plan& p) {
    using weir::overflow;
    static constexpr overflow policies[] = {overflow::wait, overflow::reject, overflow::drop_oldest,
                                            overflow::drop_newest};
    return policies[p.seed % 4];
  }
  weir::agent_ref<keeper> agent_;
};

/// A job that owns an item.
auto job(int n) {
  return [kept = item(n)]() -> task<> { co_await weir::sleep(1ms); };
}

class pool_target final : public target {
 public:
  pool_target(const hostile_plan& p, weir::scope& s)
      : pool_(s, {.name = "jobs", .workers = 1, .queue_size = p.capacity}) {}
  void act(int n) override { (void)pool_.try_submit(job(n)); }
  task<> wait(int n) override {
    auto work = job(n);
    if (n % 2 == 0) {
      co_await weir::with_timeout(1ms, pool_.submit(std::move(work)));
    } else {
      co_await weir::with_timeout(1ms, pool_.run(std::move(work)));
    }
  }
  task<> finish() override { return pool_.close(); }

 private:
  weir::pool pool_;
};

}  // namespace

std::unique_ptr<target> make_agent_target(const hostile_plan& plan, weir::scope& s) {
  if (plan.what == victim::mailbox) return std::make_unique<mailbox_target>(plan, s);
  return std::make_unique<pool_target>(plan, s);
}

}  // namespace fuzz
