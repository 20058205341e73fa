// SPDX-License-Identifier: MIT
// Mailboxes against a simple model: random sequences of casts, sends, calls and cancellations, each
// compared when nothing is ready any more; and many senders whose turns an adversary chooses.
#include <deque>
#include <map>
#include <random>

#include "agent_support.hpp"

using namespace weir_test;
using weir::overflow;

namespace {

enum class message_kind { cast, send, call };

/// The same rules, written down in the simplest way. What became of a message is a text.
class mailbox_model {
 public:
  mailbox_model(std::size_t most, overflow how) : capacity_(most), how_(how) {}

  void arrive(int id, message_kind by) {
    if (!current) {
      begin(id, by);
      accept(id, by);
    } else if (waiters.empty() && buffer.size() < capacity_) {
      buffer.push_back({id, by});
      accept(id, by);
    } else {
      find_no_room(id, by);
    }
  }
  /// The message that is being handled is done.
  void step() {
    if (!current) return;
    if (current->by == message_kind::call && !left_.contains(current->id))
      ends[current->id] = "value";
    current.reset();
    ++handled;
    while (!current && !buffer.empty()) {
      const message next = buffer.front();
      buffer.pop_front();
      if (left_.contains(next.id)) {
        ++skipped;
      } else {
        begin(next.id, next.by);
      }
    }
    while (!waiters.empty() && (!current || buffer.size() < capacity_)) {
      const message next = waiters.front();
      waiters.pop_front();
      if (current) {
        buffer.push_back(next);
      } else {
        begin(next.id, next.by);
      }
      accept(next.id, next.by);
    }
  }
  /// Whose send or call is cancelled: whoever waits for room or for an answer.
  void cancel(int id) {
    ends[id] = "cancelled";
    if (std::erase_if(waiters, [id](const message& m) { return m.id == id; }) == 0)
      left_.emplace(id, true);
  }
  /// Those whose send or call has not ended.
  numbers pending() const {
    numbers all;
    if (current && current->by == message_kind::call && !left_.contains(current->id))
      all.push_back(current->id);
    for (const message& m : waiters) all.push_back(m.id);
    if (capacity_ < unlimited) return all;  // whether who left takes room is nobody's business
    for (const message& m : buffer)
      if (m.by == message_kind::call && !left_.contains(m.id)) all.push_back(m.id);
    return all;
  }

  struct message {
    int id;
    message_kind by;
  };
  static constexpr std::size_t unlimited = 1'000'000;
  std::optional<message> current;
  std::deque<message> buffer, waiters;
  std::map<int, std::string> ends;
  numbers begun;
  std::size_t handled = 0;
  std::size_t dropped = 0;
  std::size_t skipped = 0;

 private:
  void begin(int id, message_kind by) {
    current = message{id, by};
    begun.push_back(id);
  }
  void accept(int id, message_kind by) {
    if (by != message_kind::call) ends[id] = "enqueued";
  }
  void find_no_room(int id, message_kind by) {
    if (how_ == overflow::wait) {
      if (by == message_kind::cast) {
        ends[id] = "full";
      } else {
        waiters.push_back({id, by});
      }
    } else if (how_ == overflow::drop_oldest) {
      const message old = buffer.front();
      buffer.pop_front();
      if (old.by == message_kind::call) ends[old.id] = "mailbox_full";
      ++dropped;
      buffer.push_back({id, by});
      accept(id, by);
    } else if (by != message_kind::cast) {
      ends[id] = "mailbox_full";
    } else if (how_ == overflow::drop_newest) {
      ends[id] = "dropped";
      ++dropped;
    } else {
      ends[id] = "full";
    }
  }

  std::size_t capacity_;
  overflow how_;
  std::map<int, bool> left_;  // calls that were cancelled after they had been accepted
};

/// Handles a message for as long as the test wants.
class slow {
 public:
  slow(numbers* begun, weir::queue<int>* steps) : begun_(begun), steps_(steps) {}
  task<> work(int id) {
    begun_->push_back(id);
    (void)co_await steps_->next();
  }

 private:
  numbers* begun_;
  weir::queue<int>* steps_;
};

/// An agent beside the model; every message has a number.
class mailbox_comparison {
 public:
  mailbox_comparison(weir::scope& s, unsigned seed, std::size_t capacity, overflow how)
      : scope_(s), random_(seed), model_(capacity, how), steps_(weir::unbounded) {
    weir::agent_options options;
    options.name = "slow";
    if (capacity < mailbox_model::unlimited) options.capacity = static_cast<std::int64_t>(capacity);
    options.overflow = how;
    agent_ = weir::spawn_agent<slow>(s, options, &begun_, &steps_);
  }

  task<> run(int messages) {
    for (int id = 1; id <= messages; ++id) {
      one_action(id);
      co_await weir::sleep(1ms);
      compare("after action " + std::to_string(id));
    }
    while (model_.current) {
      EXPECT_FALSE(steps_.try_push(0));
      model_.step();
      co_await weir::sleep(1ms);
    }
    compare("at the end");
    co_await agent_->stop();
  }

 private:
  void one_action(int id) {
    const auto choice = random_() % 100;
    if (choice < 25) {
      cast(id);
    } else if (choice < 45) {
      start(id, message_kind::send);
    } else if (choice < 65) {
      start(id, message_kind::call);
    } else if (choice < 85) {
      if (model_.current) {
        EXPECT_FALSE(steps_.try_push(0));
      }
      model_.step();
    } else {
      cancel_one();
    }
  }
  void cast(int id) {
    const sent answer = agent_->cast(&slow::work, id);
    ends_[id] = answer == sent::enqueued ? "enqueued" : answer == sent::full ? "full" : "dropped";
    EXPECT_NE(answer, sent::stopped);
    model_.arrive(id, message_kind::cast);
  }
  void start(int id, message_kind by) {
    messages_.emplace(id, scope_.spawn(goes(id, by)));
    model_.arrive(id, by);
  }
  task<> goes(int id, message_kind by) {
    bool told = false;
    const auto guard = weir::scope_exit([this, id, &told] {
      if (!told) ends_[id] = "cancelled";
    });
    std::error_code code;
    if (by == message_kind::call) {
      code = co_await code_of_call(*agent_, &slow::work, id);
    } else {
      code = co_await code_of_send(*agent_, &slow::work, id);
    }
    told = true;
    ends_[id] = code == errc::mailbox_full ? "mailbox_full"
                : code                     ? code.message()
                : by == message_kind::call ? "value"
                                           : "enqueued";
  }
  void cancel_one() {
    const numbers pending = model_.pending();
    if (pending.empty()) return;
    const int id = pending[random_() % pending.size()];
    messages_.at(id).cancel();
    model_.cancel(id);
  }
  void compare(const std::string& when) {
    EXPECT_EQ(ends_, model_.ends) << when;
    EXPECT_EQ(begun_, model_.begun) << when;
    const weir::agent_info now = agent_->info();
    EXPECT_EQ(now.queued, model_.buffer.size()) << when;
    EXPECT_EQ(now.handled, model_.handled) << when;
    EXPECT_EQ(now.dropped, model_.dropped) << when;
    EXPECT_EQ(now.skipped, model_.skipped) << when;
  }

  weir::scope& scope_;
  std::mt19937 random_;
  mailbox_model model_;
  weir::queue<int> steps_;
  numbers begun_;
  std::optional<agent_ref<slow>> agent_;
  std::map<int, weir::child<void>> messages_;
  std::map<int, std::string> ends_;
};

task<> compare(unsigned seed, std::size_t capacity, overflow how, int actions) {
  std::optional<mailbox_comparison> both;  // outlives the agent, which uses it
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    both.emplace(s, seed, capacity, how);
    co_await both->run(actions);
    co_await s.join();
  });
}

constexpr overflow policies[] = {overflow::wait, overflow::reject, overflow::drop_oldest,
                                 overflow::drop_newest};

}  // namespace

TEST(mailbox_model, random_messages_agree_with_a_simple_model_under_every_policy) {
  for (const overflow how : policies) {
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        const auto seed = static_cast<unsigned>(weir::random());
        const std::size_t capacity = 1 + weir::random() % 3;
        co_await compare(seed, capacity, how, 30);
      });
    });
  }
}

TEST(mailbox_model, long_random_sequences_agree_with_it_in_the_order_of_production) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    in_order([&] { return compare(seed, 1 + seed % 4, policies[seed % 4], 200); });
  }
}

TEST(mailbox_model, an_unbounded_one_agrees_with_it_also_when_queued_calls_leave) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    in_order([&] { return compare(seed, mailbox_model::unlimited, overflow::reject, 200); });
  }
}

// ------------------------------------------------------------------ crowds

namespace {

/// Takes numbers, one at a time; a number is its sender times 1000 and a rising one.
class exclusive_clerk {
 public:
  exclusive_clerk(numbers* taken, int* inside) : taken_(taken), inside_(inside) {}
  task<int> take(int n) {
    EXPECT_EQ(++*inside_, 1) << "two handlers at once";
    taken_->push_back(n);
    if (n % 2 == 0) co_await weir::yield();
    --*inside_;
    co_return n;
  }

 private:
  numbers* taken_;
  int* inside_;
};

/// Senders that come and go; what they were told must agree with what was handled.
class crowd {
 public:
  crowd(std::int64_t capacity, overflow how) : capacity_(capacity) {
    options_.name = "clerk";
    options_.capacity = capacity;
    options_.overflow = how;
  }

  task<> run(int senders, int messages) {
    std::optional<agent_ref<exclusive_clerk>> a;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      a = weir::spawn_agent<exclusive_clerk>(s, options_, &taken_, &inside_);
      std::vector<weir::child<void>> all;
      for (int i = 1; i <= senders; ++i) all.push_back(s.spawn(sends(*a, i, messages)));
      for (int i = 0; i < 10; ++i) {
        if (weir::random() % 4 == 0) all[weir::random() % all.size()].cancel();
        EXPECT_LE(a->info().queued, static_cast<std::size_t>(capacity_));
        co_await weir::yield();
      }
      for (auto& one : all) co_await weir::settle(one);
    });
    check(a->info());
  }

 private:
  task<> sends(agent_ref<exclusive_clerk> to, int who, int messages) {
    for (int i = 1; i <= messages; ++i) {
      const int n = who * 1000 + i;
      if (weir::random() % 3 == 0) {
        if (to.cast(&exclusive_clerk::take, n) == sent::enqueued) accepted_.push_back(n);
      } else if (weir::random() % 2 == 0) {
        const std::error_code code = co_await code_of_send(to, &exclusive_clerk::take, n);
        if (!code) accepted_.push_back(n);
        EXPECT_TRUE(!code || code == errc::mailbox_full) << code.message();
      } else {
        const std::error_code code = co_await code_of_call(to, &exclusive_clerk::take, n);
        if (!code) accepted_.push_back(n);
        EXPECT_TRUE(!code || code == errc::mailbox_full) << code.message();
      }
      co_await weir::yield();
    }
  }
  void check(const weir::agent_info& end) const {
    std::map<int, int> last;
    for (int n : taken_) {
      EXPECT_GT(n % 1000, last[n / 1000]) << "out of order, or twice";
      last[n / 1000] = n % 1000;
    }
    for (int n : accepted_) EXPECT_EQ(counted_in(taken_, n), 1) << "accepted but not handled";
    EXPECT_EQ(end.handled, taken_.size());
    EXPECT_EQ(end.queued, 0U);
  }

  std::int64_t capacity_;
  weir::agent_options options_;
  numbers taken_, accepted_;
  int inside_ = 0;
};

}  // namespace

TEST(mailbox_model, a_crowd_that_comes_and_goes_agrees_with_what_is_handled) {
  for (const overflow how : policies) {
    if (how == overflow::drop_oldest) continue;
    for_each_order([&](weir::sim::world& w) {
      w.run([&]() -> task<> {
        crowd c(1 + static_cast<std::int64_t>(weir::random() % 2), how);
        co_await c.run(3, 4);
      });
    });
  }
}
