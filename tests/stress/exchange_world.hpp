// SPDX-License-Identifier: MIT
// The fibers of a random exchange. The ways to put and to take are templates over the port: what
// makes the waits of one kind of container.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <weir/weir.hpp>

#include "stress/exchange_plan.hpp"
#include "stress/item.hpp"

namespace fuzz {

using weir::task;

/// What is known about an item that was to be put.
enum class fate : std::uint8_t {
  refused,   // it is nowhere
  accepted,  // it was taken, or is still there
  unknown    // either of them: the composite does not say which arm won
};

/// What the fibers of an exchange share.
class exchange {
 public:
  explicit exchange(const exchange_plan& p) : plan(p), numbers(1), permits(1), free(100) {}

  void problem(std::string text) { problems += std::move(text) + "\n"; }
  int next_number() { return ++last_; }
  /// Every taken item is one that was put, and not taken before by the same consumer.
  void note_taken(std::vector<int>& by, const item& i) { by.push_back(i.value()); }

  const exchange_plan& plan;
  weir::queue<int> numbers;         // for races: something comes now and then
  weir::counting_governor permits;  // for races: held now and then
  weir::counting_governor free;     // never a reason to wait
  std::map<int, fate> put;
  std::vector<std::vector<int>> taken;  // by consumer
  int producing = 0;                    // actors that still put
  bool over = false;
  std::string problems;

 private:
  int last_ = 0;
};

inline weir::duration millis(int n) { return std::chrono::milliseconds(n); }

template <class Port>
class putter {
 public:
  putter(exchange& x, Port& port) : x_(x), port_(port) {}

  /// One item, by one composite: whether it was put.
  task<fate> put(const act& a) {
    value_ = x_.next_number();
    x_.put[value_] = fate::unknown;  // until it is known
    fate how = fate::unknown;
    if (a.by <= way::in_cancelled_child) {
      how = co_await alone(a);
    } else if (a.by <= way::race_permit) {
      how = co_await racing(a);
    } else {
      how = co_await with_another(a);
    }
    x_.put[value_] = how;
    co_return how;
  }

 private:
  auto one() { return port_.put(item(value_)); }

  task<fate> alone(const act& a) {
    switch (a.by) {
      case way::timeout:
        try {
          co_await weir::with_timeout(millis(a.ms), one());
        } catch (const weir::timeout_error&) {
          co_return fate::refused;
        }
        break;
      case way::settled: {
        auto how = co_await weir::settle(one());
        how.value();
        break;
      }
      case way::in_cancelled_child: {
        bool done = false;
        auto body = [&](weir::scope& s) -> task<> {
          auto child = s.spawn(put_in_child(done));
          co_await weir::sleep(millis(a.ms));
          child.cancel("given up");
        };
        co_await weir::with_scope(body);
        co_return done ? fate::accepted : fate::refused;
      }
      default:
        co_await one();
        break;
    }
    co_return fate::accepted;
  }
  task<> put_in_child(bool& done) {
    co_await one();
    done = true;
  }

  task<fate> racing(const act& a) {
    bool lost = false;
    if (a.by == way::race_number) {
      auto first = co_await weir::race(one(), x_.numbers.next());
      lost = first.index() != 0;
    } else if (a.by == way::any_number) {
      auto first = co_await weir::any(one(), x_.numbers.next());
      lost = first.index() != 0;
    } else {
      auto first = co_await weir::race(one(), x_.permits.acquire());
      lost = first.index() != 0;
    }
    co_return lost ? fate::refused : fate::accepted;
  }

  task<fate> with_another(const act& a) {
    switch (a.by) {
      case way::race_sleep:
        co_await weir::race(one(), weir::sleep(millis(a.ms)));
        co_return fate::unknown;
      case way::any_sleep:
        co_await weir::any(one(), weir::sleep(millis(a.ms)));
        co_return fate::unknown;
      case way::race_twice: {
        const int other = x_.next_number();
        x_.put[other] = fate::unknown;
        co_await weir::race(one(), port_.put(item(other)));
        co_return fate::unknown;
      }
      case way::all_twice: {
        const int other = x_.next_number();
        x_.put[other] = fate::unknown;
        co_await weir::all(one(), port_.put(item(other)));
        x_.put[other] = fate::accepted;
        break;
      }
      case way::all_permit: {
        auto both = co_await weir::all(one(), x_.free.acquire());
        break;
      }
      default:
        co_await weir::all(one(), weir::sleep(millis(a.ms)));
        break;
    }
    co_return fate::accepted;
  }

  exchange& x_;
  Port& port_;
  int value_ = 0;
};

template <class Port>
class taker {
 public:
  taker(exchange& x, Port& port, std::vector<int>& into) : x_(x), port_(port), into_(into) {}

  /// Whether there may be more.
  task<bool> take(const act& a) {
    if (a.by <= way::in_cancelled_child) {
      co_await alone(a);
    } else if (a.by <= way::any_sleep) {
      co_await racing(a);
    } else {
      co_await with_another(a);
    }
    co_return !at_end_;
  }
  void note(const std::optional<item>& i) {
    if (i) {
      x_.note_taken(into_, *i);
    } else {
      at_end_ = true;
    }
  }

 private:
  task<> alone(const act& a) {
    switch (a.by) {
      case way::timeout:
        try {
          auto i = co_await weir::with_timeout(millis(a.ms), port_.take());
          note(i);
        } catch (const weir::timeout_error&) {
        }
        break;
      case way::settled: {
        auto how = co_await weir::settle(port_.take());
        note(how.value());
        break;
      }
      case way::in_cancelled_child: {
        auto body = [&](weir::scope& s) -> task<> {
          auto child = s.spawn(take_in_child());
          co_await weir::sleep(millis(a.ms));
          child.cancel("given up");
        };
        co_await weir::with_scope(body);
        break;
      }
      default: {
        auto i = co_await port_.take();
        note(i);
        break;
      }
    }
  }
  task<> take_in_child() {
    auto i = co_await port_.take();
    note(i);
  }

  template <class Other>
  task<> race_with(Other other) {
    auto first = co_await weir::race(port_.take(), std::move(other));
    if (first.index() == 0) note(std::get<0>(first));
  }
  template <class Other>
  task<> any_with(Other other) {
    auto first = co_await weir::any(port_.take(), std::move(other));
    if (first.index() == 0) note(std::get<0>(first));
  }
  task<> racing(const act& a) {
    switch (a.by) {
      case way::race_number:
        return race_with(x_.numbers.next());
      case way::any_number:
        return any_with(x_.numbers.next());
      case way::race_permit:
        return race_with(x_.permits.acquire());
      case way::race_sleep:
        return race_with(weir::sleep(millis(a.ms)));
      default:
        return any_with(weir::sleep(millis(a.ms)));
    }
  }

  task<> with_another(const act& a) {
    switch (a.by) {
      case way::race_twice: {
        auto i = co_await weir::race(port_.take(), port_.take());
        note(i);
        break;
      }
      case way::all_twice: {
        auto both = co_await weir::all(port_.take(), port_.take());
        note(std::get<0>(both));
        note(std::get<1>(both));
        break;
      }
      case way::all_permit: {
        auto both = co_await weir::all(port_.take(), x_.free.acquire());
        note(std::get<0>(both));
        break;
      }
      default: {
        auto both = co_await weir::all(port_.take(), weir::sleep(millis(a.ms)));
        note(std::get<0>(both));
        break;
      }
    }
  }

  exchange& x_;
  Port& port_;
  std::vector<int>& into_;
  bool at_end_ = false;
};

/// Puts the items of the actor. Those that were refused are replaced by others.
template <class Port>
task<> produce(exchange& x, Port& port, const actor& who) {
  putter<Port> p(x, port);
  for (int i = 0; i < who.items; ++i) {
    const act& a = who.acts[static_cast<std::size_t>(i) % who.acts.size()];
    if (a.pause > 0) co_await weir::sleep(millis(a.pause));
    (void)co_await p.put(a);
  }
}

/// Takes items until the end.
template <class Port>
task<> consume_all(exchange& x, Port& port, const actor& who, std::vector<int>& into) {
  taker<Port> t(x, port, into);
  for (std::size_t i = 0;; ++i) {
    const act& a = who.acts[i % who.acts.size()];
    if (a.pause > 0) co_await weir::sleep(millis(a.pause));
    const bool more = co_await t.take(a);
    if (!more) break;
  }
}

/// `all(put, take)` on one object completes, whatever the others do.
template <class Port>
task<> put_and_take(exchange& x, Port& port, const actor& who, std::vector<int>& into) {
  taker<Port> t(x, port, into);
  for (int i = 0; i < who.items; ++i) {
    const int number = x.next_number();
    x.put[number] = fate::unknown;
    const act& a = who.acts[static_cast<std::size_t>(i) % who.acts.size()];
    if (a.pause > 0) co_await weir::sleep(millis(a.pause));
    if (a.ms % 2 == 0) {
      auto both = co_await weir::all(port.put(item(number)), port.take());
      t.note(std::get<1>(both));
    } else {
      auto both = co_await weir::all(port.take(), port.put(item(number)));
      t.note(std::get<0>(both));
    }
    x.put[number] = fate::accepted;
  }
}

/// Runs all actors on their ports; `close` is called when nobody puts any more. `ports` must stay.
task<> exchange_over_queue(exchange& x);
task<> exchange_over_channel(exchange& x);
task<> exchange_over_broadcast(exchange& x);

/// What an actor does, whatever its role is; `close` ends the container behind the last producer.
template <class Port, class Close>
task<> play(exchange& x, Port& port, const actor& who, std::vector<int>& into, Close& close) {
  if (who.as == role::producer) co_await produce(x, port, who);
  if (who.as == role::both) co_await put_and_take(x, port, who, into);
  if (who.as != role::consumer && --x.producing == 0) close();
  const bool goes_on = who.as == role::both && x.plan.what == container::broadcast;
  if (who.as == role::consumer || goes_on) co_await consume_all(x, port, who, into);
}

}  // namespace fuzz
