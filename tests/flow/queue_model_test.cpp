// SPDX-License-Identifier: MIT
// queue against a simple model: random sequences of calls, each compared when nothing is ready any
// more, and many producers and consumers whose turns an adversary chooses.
#include <deque>
#include <map>
#include <random>

#include "flow_support.hpp"

using namespace weir_test;

namespace {

/// The same rules, written down in the simplest way. What became of a call is a text.
class queue_model {
 public:
  explicit queue_model(std::size_t most) : capacity(most) {}

  void push(int id) {
    if (closed) {
      ends[id] = "closed";
    } else if (!consumers.empty()) {
      give(id);
      ends[id] = "pushed";
    } else if (buffer.size() < capacity) {
      buffer.push_back(id);
      ends[id] = "pushed";
    } else {
      producers.push_back(id);
    }
  }
  void next(int id) {
    if (!buffer.empty()) {
      ends[id] = std::to_string(buffer.front());
      buffer.pop_front();
      if (!producers.empty()) buffer.push_back(accept());
    } else if (!producers.empty()) {
      ends[id] = std::to_string(accept());
    } else if (closed) {
      ends[id] = failed ? "boom" : "end";
      failed = false;
    } else {
      consumers.push_back(id);
    }
  }
  void cancel(int id) {
    ends[id] = "cancelled";
    std::erase(producers, id);
    std::erase(consumers, id);
  }
  void end(bool with_error, bool discarding) {
    if (!closed) {
      failed = with_error && consumers.empty();
      for (int id : consumers) ends[id] = with_error ? "boom" : "end";
      for (int id : producers) ends[id] = "closed";
      consumers.clear();
      producers.clear();
      closed = true;
    }
    if (discarding) buffer.clear();
  }

  std::size_t capacity;
  std::deque<int> buffer, producers, consumers;
  bool closed = false;
  bool failed = false;
  std::map<int, std::string> ends;

 private:
  int accept() {
    int id = producers.front();
    producers.pop_front();
    ends[id] = "pushed";
    return id;
  }
  void give(int value) {
    ends[consumers.front()] = std::to_string(value);
    consumers.pop_front();
  }
};

/// A queue beside its model; every call has a number, which is also the value that it pushes.
class queue_comparison {
 public:
  queue_comparison(weir::scope& s, unsigned seed, std::size_t capacity)
      : scope_(s), random_(seed), model_(capacity), queue_(static_cast<std::int64_t>(capacity)) {}

  task<> run(int calls) {
    for (int id = 1; id <= calls; ++id) {
      one_call(id);
      EXPECT_LE(queue_.size(), model_.capacity) << "after call " << id;
      co_await weir::sleep(1ms);
      EXPECT_EQ(queue_.size(), model_.buffer.size()) << "after call " << id;
      EXPECT_EQ(queue_.closed(), model_.closed) << "after call " << id;
      EXPECT_EQ(ends_, model_.ends) << "after call " << id;
    }
    queue_.close();
    model_.end(false, false);
    co_await weir::sleep(1ms);
    EXPECT_EQ(ends_, model_.ends) << "at the end";
  }

 private:
  void one_call(int id) {
    const auto choice = random_() % 100;
    if (choice < 25) {
      start(id, pushes(id));
      model_.push(id);
    } else if (choice < 50) {
      start(id, takes(id));
      model_.next(id);
    } else if (choice < 65) {
      try_push(id);
    } else if (choice < 75) {
      try_next(id);
    } else if (choice < 96) {
      cancel_one();
    } else {
      end_it(choice);
    }
  }
  void start(int id, task<> call) { calls_.emplace(id, scope_.spawn(std::move(call))); }
  task<> pushes(int id) {
    std::string& end = ends_of_[id] = "cancelled";
    const note_end when_it_ends{*this, id};
    auto make = [&] { return queue_.push(id); };
    const std::exception_ptr error = co_await attempt(make);
    end = error == nullptr ? "pushed" : "closed";
    EXPECT_TRUE(error == nullptr || code_of(error) == errc::queue_closed);
  }
  task<> takes(int id) {
    std::string& end = ends_of_[id] = "cancelled";
    const note_end when_it_ends{*this, id};
    try {
      auto v = co_await queue_.next();
      end = v ? std::to_string(*v) : "end";
    } catch (const boom&) {
      end = "boom";
    }
  }
  void try_push(int id) {
    const std::error_code code = queue_.try_push(id);
    const bool room = model_.buffer.size() < model_.capacity || !model_.consumers.empty();
    if (model_.closed) {
      EXPECT_EQ(code, errc::queue_closed);
    } else if (!room) {
      EXPECT_EQ(code, errc::queue_full);
    } else {
      EXPECT_EQ(code, std::error_code());
      model_.push(id);
      ends_[id] = "pushed";
    }
  }
  void try_next(int id) {
    std::string got = "nothing";
    try {
      auto v = queue_.try_next();
      if (v) got = std::to_string(*v);
    } catch (const boom&) {
      got = "boom";
    }
    queue_model expected = model_;
    expected.next(id);
    const bool waits = !expected.consumers.empty() && expected.consumers.back() == id;
    if (!waits) model_ = expected;
    const std::string said = waits || expected.ends[id] == "end" ? "nothing" : expected.ends[id];
    EXPECT_EQ(got, said) << "try_next in call " << id;
    model_.ends.erase(id);
  }
  void cancel_one() {
    std::deque<int> waiting = model_.producers;
    waiting.insert(waiting.end(), model_.consumers.begin(), model_.consumers.end());
    if (waiting.empty()) return;
    const int id = waiting[random_() % waiting.size()];
    calls_.at(id).cancel();
    model_.cancel(id);
  }
  void end_it(unsigned long choice) {
    if (choice == 96) queue_.close();
    if (choice == 97) queue_.discard();
    if (choice >= 98) queue_.fail(std::make_exception_ptr(boom(1)));
    model_.end(choice >= 98, choice == 97);
  }

  struct note_end {
    queue_comparison& of;
    int id;
    ~note_end() { of.ends_[id] = of.ends_of_[id]; }
  };

  weir::scope& scope_;
  std::mt19937 random_;
  queue_model model_;
  weir::queue<int> queue_;
  std::map<int, weir::child<void>> calls_;
  std::map<int, std::string> ends_of_;  // what a call that is not finished will have become
  std::map<int, std::string> ends_;
};

task<> compare_queue(unsigned seed, std::size_t capacity, int calls) {
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    queue_comparison both(s, seed, capacity);
    co_await both.run(calls);
    co_await s.join();
  });
}

/// Producers and consumers that come and go; an observer looks at the size after each of its turns.
class pushing_crowd {
 public:
  explicit pushing_crowd(std::int64_t capacity) : queue_(capacity) {}

  task<> run(int producers, int consumers, int values) {
    numbers left;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::vector<weir::child<void>> all;
      for (int i = 0; i < producers; ++i) all.push_back(s.spawn(produce(i, values)));
      for (int i = 0; i < consumers; ++i) s.spawn(consume());
      for (int i = 0; i < 20; ++i) {
        if (weir::random() % 4 == 0) all[weir::random() % all.size()].cancel();
        if (weir::random() % 4 == 0) s.spawn(consume()).cancel();
        EXPECT_LE(static_cast<std::int64_t>(queue_.size()), queue_.capacity());
        co_await weir::yield();
      }
      for (auto& p : all) co_await weir::settle(p);
      queue_.close();
      co_await s.idle();
    });
    EXPECT_EQ(sorted(accepted_), sorted(taken_));
  }

 private:
  // A value is its producer times 1000 and a number that rises.
  task<> produce(int who, int values) {
    for (int i = 0; i < values; ++i) {
      co_await queue_.push(who * 1000 + i);
      accepted_.push_back(who * 1000 + i);
    }
  }
  task<> consume() {
    std::map<int, int> last;
    for (;;) {
      EXPECT_LE(static_cast<std::int64_t>(queue_.size()), queue_.capacity());
      auto v = co_await queue_.next();
      if (!v) co_return;
      taken_.push_back(*v);
      EXPECT_GE(*v % 1000, last[*v / 1000]) << "a producer's values are out of order";
      last[*v / 1000] = *v % 1000 + 1;
    }
  }

  weir::queue<int> queue_;
  numbers accepted_, taken_;
};

}  // namespace

FIBER_TEST_IN_EVERY_ORDER(queue_model, random_sequences_of_calls_agree_with_a_simple_model) {
  const auto seed = static_cast<unsigned>(weir::random());
  co_await compare_queue(seed, weir::random() % 4, 40);
}

TEST(queue_model, long_random_sequences_agree_with_it_in_the_order_of_production) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    in_order([&] { return compare_queue(seed, seed % 4, 150); });
  }
}
TEST(queue_model, a_crowd_that_comes_and_goes_loses_nothing_and_keeps_the_capacity) {
  for (std::int64_t capacity : {0, 1, 3}) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        pushing_crowd c(capacity);
        co_await c.run(3, 2, 5);
      });
    });
  }
}
TEST(queue_model, a_long_run_of_a_large_crowd_loses_nothing_and_keeps_the_capacity) {
  constexpr int values = 900;
  for (std::int64_t capacity : {0, 1, 7}) {
    weir::sim::options options{};
    options.seed = 11;
    options.strategy = weir::sim::random;
    weir::sim::run(options, [&]() -> task<> {
      pushing_crowd c(capacity);
      co_await c.run(60, 40, values);
    });
  }
}
