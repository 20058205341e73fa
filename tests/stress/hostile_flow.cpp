// SPDX-License-Identifier: MIT
// Hostile items in queues, channels, broadcasts, replays, states, oneshots and callback streams.
#include <chrono>
#include <list>
#include <optional>
#include <stdexcept>
#include <utility>

#include "stress/hostile_targets.hpp"

namespace fuzz {

namespace {

class queue_target final : public target {
 public:
  explicit queue_target(const hostile_plan& p) : q_(p.capacity) {}
  void act(int n) override {
    switch (n % 16) {
      case 0:
        return q_.close();
      case 1:
        return q_.discard();
      case 2:
        return q_.fail(std::make_exception_ptr(boom(3)));
      case 3:
      case 4:
      case 5:
      case 6:
        (void)q_.try_next();
        return;
      default:
        (void)q_.try_push(item(n));
        return;
    }
  }
  task<> wait(int n) override {
    if (n % 2 == 0) {
      (void)co_await weir::with_timeout(1ms, q_.next());
    } else {
      co_await weir::with_timeout(1ms, q_.push(item(n)));
    }
  }

 private:
  weir::queue<item> q_;
};

class channel_target final : public target {
 public:
  explicit channel_target(const hostile_plan& p) {
    auto [tx, rx] = weir::channel<item>(p.capacity);
    to_.emplace(std::move(tx));
    from_.emplace(std::move(rx));
  }
  void act(int n) override {
    if (n % 16 == 0) {
      to_->close();
    } else if (n % 16 == 1) {
      from_->close();
    } else {
      (void)to_->try_send(item(n));
    }
  }
  task<> wait(int n) override {
    if (n % 2 == 0 && !receiving_) {
      receiving_ = true;
      const auto done = weir::scope_exit([&] { receiving_ = false; });
      (void)co_await weir::with_timeout(1ms, from_->next());
    } else {
      co_await weir::with_timeout(1ms, to_->send(item(n)));
    }
  }

 private:
  std::optional<weir::sender<item>> to_;
  std::optional<weir::receiver<item>> from_;
  bool receiving_ = false;
};

/// Subscriptions that come and go. One that is in use stays.
class subscriptions {
 public:
  void add(weir::subscription<item> s) {
    if (all_.size() < 5) all_.push_back({std::move(s)});
  }
  void drop_one() {
    for (auto it = all_.begin(); it != all_.end(); ++it) {
      if (it->used) continue;
      // Out of the list first: its items may be hostile.
      std::list<entry> gone;
      gone.splice(gone.begin(), all_, it);
      return;
    }
  }
  task<> pull(int n) {
    auto it = all_.begin();
    for (int i = n % 5; it != all_.end() && (i > 0 || it->used); --i) ++it;
    if (it == all_.end()) co_return;
    it->used = true;
    const auto done = weir::scope_exit([&] { it->used = false; });
    (void)co_await weir::with_timeout(1ms, it->sub.next());
  }
  void drop_all() {
    while (!all_.empty()) drop_one();
  }

 private:
  struct entry {
    weir::subscription<item> sub;
    bool used = false;
  };
  std::list<entry> all_;
};

weir::subscribe_options any_options(int n) {
  using weir::overflow;
  static constexpr overflow policies[] = {overflow::wait,        overflow::drop_oldest,
                                          overflow::drop_newest, overflow::conflate,
                                          overflow::disconnect,  overflow::fail_emitter};
  return {.overflow = policies[n % 6], .replay = n % 3};
}

/// Of broadcast and replay.
template <class B>
class broadcast_target final : public target {
 public:
  explicit broadcast_target(const hostile_plan& p) : b_(p.capacity) {}
  ~broadcast_target() override { subs_.drop_all(); }
  void act(int n) override {
    switch (n % 16) {
      case 0:
        return b_.close();
      case 1:
        return b_.fail(std::make_exception_ptr(boom(3)));
      case 2:
      case 3:
        return subs_.drop_one();
      case 4:
      case 5:
      case 6:
        if constexpr (std::is_same_v<B, weir::replay<item>>) return subs_.add(b_.subscribe());
        return subs_.add(b_.subscribe(any_options(n)));
      default:
        (void)b_.try_emit(item(n));
        return;
    }
  }
  task<> wait(int n) override {
    if (n % 3 == 0) {
      co_await weir::with_timeout(1ms, b_.emit(item(n)));
    } else {
      co_await subs_.pull(n);
    }
  }

 private:
  B b_;
  subscriptions subs_;
};

class state_target final : public target {
 public:
  state_target() : st_(item(0)) {}
  ~state_target() override { subs_.drop_all(); }
  void act(int n) override {
    switch (n % 8) {
      case 0:
        return subs_.add(st_.subscribe());
      case 1:
        return subs_.drop_one();
      case 2:
        (void)item(st_.get());
        return;
      default:
        return st_.set(item(n));
    }
  }
  task<> wait(int n) override { return subs_.pull(n); }

 private:
  weir::state<item> st_;
  subscriptions subs_;
};

/// A oneshot and its successor.
class oneshot_target final : public target {
 public:
  void act(int n) override {
    switch (n % 8) {
      case 0:
        // In its place first: the old one may have a hostile item.
        if (!fresh_used_) (void)std::exchange(fresh_, std::make_unique<weir::oneshot<item>>());
        return;
      case 1:
        (void)o_.fail(std::make_exception_ptr(boom(3)));
        return;
      case 2:
        (void)o_.future().done();
        return;
      case 3:
        if (fresh_) (void)fresh_->send(item(n));
        return;
      default:
        (void)o_.send(item(n));
        return;
    }
  }
  task<> wait(int n) override {
    if (n % 2 == 0 || !fresh_) {
      (void)co_await weir::with_timeout(1ms, o_.receive());
    } else {
      fresh_used_ = true;
      const auto done = weir::scope_exit([&] { fresh_used_ = false; });
      (void)co_await weir::with_timeout(1ms, fresh_->receive());
    }
  }

 private:
  weir::oneshot<item> o_;
  std::unique_ptr<weir::oneshot<item>> fresh_;
  bool fresh_used_ = false;
};

class callback_target final : public target {
 public:
  explicit callback_target(const hostile_plan& p)
      : stream_(weir::from_callback<item>(p.capacity, policy_of(p), [this](weir::emitter<item> e) {
          to_.emplace(e);
          return [] {};
        })) {}
  void act(int n) override {
    if (!to_) return;
    if (n % 16 == 0) {
      to_->close();
    } else if (n % 16 == 1) {
      to_->fail(std::make_exception_ptr(boom(3)));
    } else {
      (void)to_->emit(item(n));
    }
  }
  task<> wait(int) override {
    if (pulled_) co_return;
    pulled_ = true;
    const auto done = weir::scope_exit([&] { pulled_ = false; });
    (void)co_await weir::with_timeout(1ms, stream_.next());
  }

 private:
  static weir::overflow policy_of(const hostile_plan& p) {
    using weir::overflow;
    static constexpr overflow policies[] = {overflow::reject, overflow::drop_oldest,
                                            overflow::drop_newest, overflow::conflate};
    return policies[p.seed % 4];
  }
  std::optional<weir::emitter<item>> to_;
  weir::any_stream<item> stream_;
  bool pulled_ = false;
};

}  // namespace

std::unique_ptr<target> make_flow_target(const hostile_plan& plan) {
  switch (plan.what) {
    case victim::queue:
      return std::make_unique<queue_target>(plan);
    case victim::channel:
      return std::make_unique<channel_target>(plan);
    case victim::broadcast:
      return std::make_unique<broadcast_target<weir::broadcast<item>>>(plan);
    case victim::replay:
      return std::make_unique<broadcast_target<weir::replay<item>>>(plan);
    case victim::state:
      return std::make_unique<state_target>();
    case victim::oneshot:
      return std::make_unique<oneshot_target>();
    default:
      return std::make_unique<callback_target>(plan);
  }
}

}  // namespace fuzz
