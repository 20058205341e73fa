// SPDX-License-Identifier: MIT
// channel against a simple model: random sequences of calls on three loops, each compared when all
// messages have arrived, and many senders whose turns an adversary chooses.
#include <deque>
#include <map>
#include <random>

#include "flow_support.hpp"

using namespace weir_test;
using int_sender = weir::sender<int>;

namespace {

/// The same rules, written down in the simplest way. What became of a call is a text.
struct channel_model {
  std::size_t capacity = 0;
  std::deque<int> buffer, senders, consumers;
  bool closed = false;
  std::map<int, std::string> ends;

  void send(int id) {
    if (closed) {
      ends[id] = "closed";
    } else if (!consumers.empty()) {
      ends[consumers.front()] = std::to_string(id);
      consumers.pop_front();
      ends[id] = "sent";
    } else if (buffer.size() < capacity) {
      buffer.push_back(id);
      ends[id] = "sent";
    } else {
      senders.push_back(id);
    }
  }
  void next(int id) {
    if (buffer.empty()) {
      if (closed) {
        ends[id] = "end";
      } else {
        consumers.push_back(id);
      }
      return;
    }
    ends[id] = std::to_string(buffer.front());
    buffer.pop_front();
    if (senders.empty()) return;
    ends[senders.front()] = "sent";
    buffer.push_back(senders.front());
    senders.pop_front();
  }
  void cancel(int id) {
    ends[id] = "cancelled";
    std::erase(senders, id);
    std::erase(consumers, id);
  }
  void close() {
    for (int id : consumers) ends[id] = "end";
    for (int id : senders) ends[id] = "closed";
    consumers.clear();
    senders.clear();
    closed = true;
  }
};

/// A channel beside its model; every call has a number, which is also the value that it sends.
class channel_comparison {
 public:
  channel_comparison(weir::sim::world& w, weir::scope& s, unsigned seed, std::int64_t capacity)
      : world_(w), scope_(s), random_(seed) {
    model_.capacity = static_cast<std::size_t>(capacity);
    auto [tx, rx] = weir::channel<int>(capacity);
    tx_ = std::move(tx);
    rx_ = std::move(rx);
  }

  task<> run(int calls) {
    for (int id = 1; id <= calls; ++id) {
      one_call(id);
      co_await weir::sleep(1ms);
      EXPECT_EQ(ends_, model_.ends) << "after call " << id;
    }
    tx_ = int_sender();
    if (model_.senders.empty()) model_.close();
    for (int id = calls + 1; !model_.buffer.empty(); ++id) {
      model_.next(id);
      if (model_.senders.empty() && model_.buffer.empty()) model_.close();
      takes_now(id);
      co_await weir::sleep(1ms);
      EXPECT_EQ(ends_, model_.ends) << "while it is emptied";
    }
    const int last = co_await take_one(rx_);
    EXPECT_EQ(last, -1);
    co_await weir::sleep(1ms);
    EXPECT_EQ(ends_, model_.ends) << "at the end";
  }

 private:
  void one_call(int id) {
    const auto choice = random_() % 100;
    if (choice < 30) {
      auto sends = [this, id, mine = tx_]() mutable { return send(std::move(mine), id); };
      calls_.emplace(id, scope_.spawn_on(anywhere(), std::move(sends)));
      model_.send(id);
    } else if (choice < 55) {
      calls_.emplace(id, scope_.spawn(take(id)));
      model_.next(id);
    } else if (choice < 70) {
      try_send(id);
    } else if (choice < 78) {
      if (model_.consumers.empty() && !model_.buffer.empty()) {
        model_.next(id);
        takes_now(id);
      }
    } else if (choice < 98) {
      cancel_one();
    } else {
      choice == 98 ? tx_.close() : rx_.close();
      model_.close();
    }
  }
  weir::loop_ref anywhere() {
    const auto choice = random_() % 3;
    return choice == 0 ? weir::this_loop() : world_.loop(choice == 1 ? "a" : "b");
  }
  task<> send(int_sender to, int id) {
    ends_of_[id] = "cancelled";
    const note_end when_it_ends{*this, id};
    auto make = [&] { return to.send(id); };
    const std::exception_ptr error = co_await attempt(make);
    ends_of_[id] = error == nullptr ? "sent" : "closed";
    EXPECT_TRUE(error == nullptr || code_of(error) == errc::queue_closed);
  }
  task<> take(int id) {
    ends_of_[id] = "cancelled";
    const note_end when_it_ends{*this, id};
    auto v = co_await rx_.next();
    ends_of_[id] = v ? std::to_string(*v) : "end";
  }
  void takes_now(int id) {
    auto v = rx_.try_next();
    ends_[id] = v ? std::to_string(*v) : "nothing";
  }
  void try_send(int id) {
    const std::error_code code = tx_.try_send(id);
    const bool room = model_.buffer.size() < model_.capacity;
    if (model_.closed) {
      EXPECT_EQ(code, errc::queue_closed);
    } else if (!room) {
      EXPECT_EQ(code, errc::queue_full);
    } else {
      EXPECT_EQ(code, std::error_code());
      model_.send(id);
      ends_[id] = "sent";
    }
  }
  void cancel_one() {
    std::deque<int> waiting = model_.senders;
    waiting.insert(waiting.end(), model_.consumers.begin(), model_.consumers.end());
    if (waiting.empty()) return;
    const int id = waiting[random_() % waiting.size()];
    calls_.at(id).cancel();
    model_.cancel(id);
  }

  struct note_end {
    channel_comparison& of;
    int id;
    ~note_end() { of.ends_[id] = of.ends_of_[id]; }
  };

  weir::sim::world& world_;
  weir::scope& scope_;
  std::mt19937 random_;
  channel_model model_;
  int_sender tx_;
  weir::receiver<int> rx_;
  std::map<int, weir::child<void>> calls_;
  std::map<int, std::string> ends_of_;  // what a call that is not finished will have become
  std::map<int, std::string> ends_;
};

task<> compare_channel(weir::sim::world& w, unsigned seed, std::int64_t capacity, int calls) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    channel_comparison both(w, s, seed, capacity);
    co_await both.run(calls);
    co_await s.join();
  });
}

/// Senders on several loops and consumers that come and go.
class sending_crowd {
 public:
  explicit sending_crowd(weir::sim::world& w) : world_(w) {}

  task<> run(std::int64_t capacity, int senders, int values) {
    auto [tx, rx] = weir::channel<int>(capacity);
    co_await weir::with_scope([&, &from = rx, &to = tx](weir::scope& s) -> task<> {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < senders; ++i) {
        const char* where = i % 2 == 0 ? "a" : "b";
        all.push_back(s.spawn_on(world_.loop(where), produce(to, i, values)));
      }
      to = int_sender();
      for (int i = 0; i < 2; ++i) s.spawn(consume(from));
      for (int i = 0; i < 12; ++i) {
        if (weir::random() % 4 == 0) all[weir::random() % all.size()].cancel();
        if (weir::random() % 4 == 0) s.spawn(consume(from)).cancel();
        co_await weir::yield();
      }
      co_await s.idle();
    });
    EXPECT_EQ(sorted(accepted_), sorted(taken_));
  }

 private:
  // A value is its sender times 1000 and a number that rises.
  task<> produce(int_sender tx, int who, int values) {
    for (int i = 0; i < values; ++i) {
      if (i % 3 == 2) {
        if (!tx.try_send(who * 1000 + i)) accepted_.push_back(who * 1000 + i);
      } else {
        co_await tx.send(who * 1000 + i);
        accepted_.push_back(who * 1000 + i);
      }
    }
  }
  task<> consume(weir::receiver<int>& from) {
    std::map<int, int> next;
    for (;;) {
      auto v = co_await from.next();
      if (!v) co_return;
      taken_.push_back(*v);
      EXPECT_GE(*v % 1000, next[*v / 1000]) << "a sender's values are out of order";
      next[*v / 1000] = *v % 1000 + 1;
    }
  }

  weir::sim::world& world_;
  numbers accepted_, taken_;
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(channel_model, random_sequences_of_calls_agree_with_a_simple_model) {
  const auto seed = static_cast<unsigned>(weir::random());
  co_await compare_channel(w, seed, 1 + static_cast<std::int64_t>(weir::random() % 3), 40);
}

TEST(channel_model, long_random_sequences_agree_with_it_in_the_order_of_production) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    weir::sim::world w;
    w.run([&]() -> task<> { co_await compare_channel(w, seed, 1 + seed % 3, 150); });
  }
}

TEST(channel_model, senders_on_two_loops_that_come_and_go_lose_nothing) {
  for (std::int64_t capacity : {1, 2, 3}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        sending_crowd c(w);
        co_await c.run(capacity, 4, 5);
      });
    });
  }
}
