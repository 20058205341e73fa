// SPDX-License-Identifier: MIT
// One agent for each session, made at its first request and stopped when it has been idle for a
// while. The next request makes it again, with the stored state. A million users of whom a thousand
// are active at a time need a thousand agents.

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

constexpr auto idle_time = 30s;

void say(const std::string& what) {
  std::printf("  %3d s: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1s), what.c_str());
}

using cart = std::vector<std::string>;
/// The stored state of idle sessions. A real server would use a database.
using cart_store = std::map<std::string, cart>;

class session {
 public:
  session(std::string user, cart_store* store)
      : user_(std::move(user)), store_(store), cart_((*store)[user_]) {
    say(user_ + "'s session begins with " + std::to_string(cart_.size()));
  }
  // However it ends, by idling or with the server, its state goes back into the store.
  ~session() {
    say(user_ + "'s session rests with " + std::to_string(cart_.size()));
    (*store_)[user_] = std::move(cart_);
  }

  std::size_t put(std::string item) {
    stay_awake();
    cart_.push_back(std::move(item));
    return cart_.size();
  }

 private:
  // Each request postpones the end. A timer sends an ordinary message: it is handled between two
  // requests, not during one, and the timer ends with the agent.
  void stay_awake() {
    rest_later_.cancel();
    rest_later_ = weir::self<session>().cast_after(idle_time, &session::rest);
  }
  void rest() { weir::self<session>().stop(); }  // done when this handler has returned

  std::string user_;
  cart_store* store_;
  cart cart_;
  weir::timer_handle rest_later_;
};

class server {
 public:
  task<> run() { return sessions_.run(); }
  task<> stop() { co_await sessions_.stop(); }
  std::size_t awake() { return sessions_.count_children().active; }

  task<> put(std::string user, std::string item) {
    for (;;) {
      auto who = find_or_start(user);
      if (co_await was_put(who, user, item)) co_return;
      co_await who.join();  // it may still be stopping
      known_.erase(user);
    }
  }

 private:
  // `temporary`: a child that ends, in whatever way, is removed, and its name is free again.
  weir::agent_ref<session> find_or_start(const std::string& user) {
    const auto known = known_.find(user);
    if (known != known_.end()) return known->second;
    auto fresh =
        sessions_.add<session>({.name = user, .restart = weir::restart::temporary}, user, &store_);
    known_.emplace(user, fresh);
    return fresh;
  }

  // A session may stop while a request is on its way. Then the request was certainly not handled
  // and can be sent to the next one.
  task<bool> was_put(weir::agent_ref<session> who, std::string user, std::string item) {
    try {
      const std::size_t items = co_await who.call(&session::put, item);
      say(user + " puts " + item + " and has " + std::to_string(items));
      co_return true;
    } catch (const weir::agent_error& e) {
      if (e.code() != weir::errc::agent_stopped) throw;
    }
    co_return false;
  }

  cart_store store_;
  std::map<std::string, weir::agent_ref<session>> known_;
  weir::supervisor sessions_{{.name = "sessions", .strategy = weir::strategy::dynamic}};
};

task<> program() {
  server shop;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(shop.run());
    co_await weir::yield();
    co_await shop.put("ann", "a lamp");
    co_await shop.put("ben", "a rug");
    co_await weir::sleep(20s);
    co_await shop.put("ann", "a chair");  // within 30 s of her last one
    co_await weir::sleep(20s);
    say("sessions awake: " + std::to_string(shop.awake()));
    co_await weir::sleep(60s);
    say("sessions awake: " + std::to_string(shop.awake()));
    co_await shop.put("ann", "a bed");
    co_await shop.put("ben", "a sofa");
    co_await shop.stop();
  });
}

}  // namespace

int main() { weir::sim::run({}, program); }
