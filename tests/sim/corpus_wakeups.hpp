// SPDX-License-Identifier: MIT
// Bugs of waiting: lost wake-ups, deadlocks and livelocks.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "sim/corpus_quick_call.hpp"

namespace corpus {

using namespace std::chrono_literals;

// An event written by hand: the waiter looks whether it is set, and then registers.
// W1 | S1 S2 W2: the event is set between the look and the registration.
namespace lost_wake_up {

class event {
 public:
  void set() {
    set_ = true;
    waiter_.complete();
  }
  weir::task<> look_then_register() {
    if (set_) co_return;
    co_await weir::suspend<void>([this](weir::resumer<void> r) { waiter_ = std::move(r); });
  }
  weir::task<> look_while_registering() {
    co_await weir::suspend<void>([this](weir::resumer<void> r) {
      waiter_ = std::move(r);
      if (set_) waiter_.complete();
    });
  }

 private:
  bool set_ = false;
  weir::resumer<void> waiter_;
};

inline weir::task<> work_then_set(event& done) {
  co_await quick_call();
  done.set();
}
inline weir::task<> buggy() {
  event done;
  co_await weir::all(done.look_then_register(), work_then_set(done));
}
inline weir::task<> fixed() {
  event done;
  co_await weir::all(done.look_while_registering(), work_then_set(done));
}

}  // namespace lost_wake_up

// A queue written by hand that wakes a consumer only when it was empty, "because otherwise somebody
// is awake". With two consumers asleep and two items pushed before the first consumer runs, nobody
// wakes the second. The producer starts later, when both are asleep.
// After the sleep, P1 | P2: P pushes, yields, and pushes again before the consumer that it woke,
// which is at the front.
namespace wake_up_only_when_empty {

class item_queue {
 public:
  explicit item_queue(bool wakes_always) noexcept : wakes_always_(wakes_always) {}

  void push() {
    const bool was_empty = items_++ == 0;
    if ((was_empty || wakes_always_) && !sleepers_.empty()) {
      weir::resumer<void> first = std::move(sleepers_.front());
      sleepers_.erase(sleepers_.begin());
      first.complete();
    }
  }
  weir::task<> take() {
    while (items_ == 0) {
      co_await weir::suspend<void>([this](weir::resumer<void> r) {
        if (items_ > 0) return r.complete();
        sleepers_.push_back(std::move(r));
      });
    }
    --items_;
  }

 private:
  bool wakes_always_;
  int items_ = 0;
  std::vector<weir::resumer<void>> sleepers_;
};

inline weir::task<> produce(item_queue& q) {
  co_await weir::sleep(1ms);
  q.push();
  co_await weir::yield();
  q.push();
}
inline weir::task<> two_consumers(bool wakes_always) {
  item_queue q(wakes_always);
  co_await weir::all(q.take(), q.take(), produce(q));
}
inline weir::task<> buggy() { return two_consumers(false); }
inline weir::task<> fixed() { return two_consumers(true); }

}  // namespace wake_up_only_when_empty

// A wait group whose parts register themselves when they start, instead of being registered by the
// one who starts them.
// B1 | B2 B3 | B4: twice the body goes before both parts. First after the yield (B2); it goes on to
// find that nothing is pending (B3), which wakes it, and who is woken goes to the back (B4).
namespace late_registration {

class wait_group {
 public:
  void add() { ++pending_; }
  void done() {
    if (--pending_ == 0) waiter_.complete();
  }
  auto wait() {
    return weir::suspend<void>([this](weir::resumer<void> r) {
      waiter_ = std::move(r);
      if (pending_ == 0) waiter_.complete();
    });
  }

 private:
  int pending_ = 0;
  weir::resumer<void> waiter_;
};

inline weir::task<> part(wait_group& group, int& parts, bool registers_itself) {
  if (registers_itself) group.add();
  ++parts;
  group.done();
  co_return;
}
inline weir::task<> two_parts(bool register_themselves) {
  wait_group group;
  int parts = 0;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (int i = 0; i < 2; ++i) {
      if (!register_themselves) group.add();
      s.spawn(part(group, parts, register_themselves));
    }
    co_await weir::yield();  // lets them start
    co_await group.wait();
    weir::sim::always("every part is there", parts == 2);
  });
}
inline weir::task<> buggy() { return two_parts(true); }
inline weir::task<> fixed() { return two_parts(false); }

}  // namespace late_registration

// Two transfers between the same accounts in opposite directions, each locking where it takes from
// before where it gives to.
// A1 A2 | B1 B2 B3 A3: each holds one lock (A2, B2) and waits for the other's.
namespace lock_order {

class bank {
 public:
  explicit bank(bool in_one_order) noexcept : in_one_order_(in_one_order) {}

  weir::task<> transfer(std::size_t from, std::size_t to, int amount) {
    const bool swap = in_one_order_ && to < from;
    const auto first = co_await locks_[swap ? to : from].acquire();
    const auto second = co_await locks_[swap ? from : to].acquire();
    balance_[from] -= amount;
    balance_[to] += amount;
  }

 private:
  bool in_one_order_;
  std::array<int, 2> balance_{100, 100};
  std::array<weir::counting_governor, 2> locks_{weir::counting_governor(1),
                                                weir::counting_governor(1)};
};

inline weir::task<> two_transfers(bool in_one_order) {
  bank b(in_one_order);
  co_await weir::all(b.transfer(0, 1, 10), b.transfer(1, 0, 20));
}
inline weir::task<> buggy() { return two_transfers(false); }
inline weir::task<> fixed() { return two_transfers(true); }

}  // namespace lock_order

// Two services start at the same time, and each waits until the other is up if that has started
// before: the first to come finds nobody, unless the second comes while it still looks around.
// L1 | C1 C2 C3 C4 C5 L2 L3: the configuration reads its file, says that it starts (C3), sees that
// the logger has (C4) and waits, before the logger looks (L2) and waits, too.
namespace mutual_futures {

struct service {
  bool started = false;
  weir::future<void> up;
};
using starter = weir::task<> (*)(service& mine, const service& other);

inline weir::task<> say_then_look(service& mine, const service& other) {
  mine.started = true;
  co_await quick_call();  // opens its files
  if (other.started) co_await other.up;
}
inline weir::task<> look_then_say(service& mine, const service& other) {
  co_await quick_call();
  const bool wait = other.started;
  mine.started = true;
  if (wait) co_await other.up;
}
inline weir::task<> read_file_and_start(starter start, service& mine, const service& other) {
  co_await quick_call();
  co_await start(mine, other);
}
inline weir::task<> start_both(starter start) {
  service logger;
  service config;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    logger.up = s.spawn(start(logger, config), {.name = "logger"});
    config.up = s.spawn(read_file_and_start(start, config, logger), {.name = "config"});
    co_return;
  });
}
inline weir::task<> buggy() { return start_both(say_then_look); }
inline weir::task<> fixed() { return start_both(look_then_say); }

}  // namespace mutual_futures

// Two polite walkers in a corridor: who sees that the other wants to pass steps back, waits, and
// tries again. In step with each other they do so for ever. The right one comes a turn later, when
// the left one has seen that the corridor is free.
// | R1 L1 R2 R3 L2 R4 ...: both want to pass (L1, R3) before either looks (L2, R4). From then on
// they keep in step with no other preemption.
namespace polite_livelock {

struct walker {
  bool wants = false;
  weir::duration patience;
};

inline weir::task<> pass(walker& me, const walker& other) {
  for (;;) {
    me.wants = true;
    co_await weir::yield();  // looks up
    if (!other.wants) break;
    co_await weir::yield();  // says "after you"
    me.wants = false;
    co_await weir::sleep(me.patience);
  }
  me.wants = false;
}
inline weir::task<> come_in_and_pass(walker& me, const walker& other) {
  co_await weir::yield();  // comes in
  co_await pass(me, other);
}
inline weir::task<> two_walkers(weir::duration left_patience, weir::duration right_patience) {
  walker left{false, left_patience};
  walker right{false, right_patience};
  co_await weir::all(pass(left, right), come_in_and_pass(right, left));
}
inline weir::task<> buggy() { return two_walkers(1ms, 1ms); }
inline weir::task<> fixed() { return two_walkers(1ms, 3ms); }

}  // namespace polite_livelock

}  // namespace corpus
