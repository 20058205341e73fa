// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/agent.hpp>
#include <weir/detail/core/home.hpp>
#include <weir/name.hpp>

namespace weir {

/// Publishes values to agents: casts each value to every subscribed agent.
///
/// Home loop only (elsewhere: errc::wrong_loop); the agents may run on any loop. A subscription
/// lasts until the agent terminates permanently, or until `unsubscribe`. Costs: `publish` is one
/// cast, with a copy of the value, per subscription.
template <class T>
class topic {
 public:
  explicit topic(const weir::name& name = {}) : name_(name) {}
  topic(const topic&) = delete;
  topic& operator=(const topic&) = delete;

  /// `handler` is a member function of `A` that takes a `T`. An agent may subscribe with several.
  template <class A, class F>
  void subscribe(const agent_ref<A>& agent, F handler) {
    if constexpr (detail::check_handler<A, F, const T&>()) {
      require_home();
      // Subscriptions of ended agents are removed here and in publish, so that they cannot
      // accumulate.
      if (subscriptions_.size() >= sweep_at_) {
        forget([](const subscription& s) { return s.agent->ended_for_good(); });
        sweep_at_ = 16 + 2 * subscriptions_.size();
      }
      subscriptions_.push_back(std::make_unique<typed<A, F>>(agent, handler));
    }
  }
  template <class A>
  void unsubscribe(const agent_ref<A>& agent) {
    require_home();
    forget([&](const subscription& s) { return s.agent.get() == &agent.core(); });
  }
  /// Casts `value` to all subscribers. Returns the number of mailboxes that accepted it.
  std::size_t publish(const T& value) {
    require_home();
    std::size_t taken = 0;
    bool ended = false;
    for (std::size_t i = 0; i < subscriptions_.size(); ++i) {
      const sent how = subscriptions_[i]->send(value);
      if (how == sent::enqueued) ++taken;
      ended = ended || how == sent::stopped;
    }
    if (ended) forget([](const subscription& s) { return s.agent->ended_for_good(); });
    return taken;
  }
  /// Number of subscriptions, including those of agents that have ended since the last `publish`.
  std::size_t subscribers() const noexcept { return subscriptions_.size(); }

 private:
  struct subscription {
    explicit subscription(detail::agent_handle a) noexcept : agent(std::move(a)) {}
    subscription(const subscription&) = delete;
    subscription& operator=(const subscription&) = delete;
    virtual ~subscription() = default;
    virtual sent send(const T& value) = 0;
    detail::agent_handle agent;
  };
  template <class A, class F>
  struct typed final : subscription {
    typed(const agent_ref<A>& to, F what)
        : subscription(detail::agent_handle::share(&to.core())), handler(what) {}
    sent send(const T& value) override { return agent_ref<A>(this->agent).cast(handler, value); }
    F handler;
  };

  void require_home() {
    if (!home_.is_here()) home_.settle({"topic", name_.view()}, "an agent that publishes", false);
  }
  template <class P>
  void forget(P&& unwanted) {
    std::size_t kept = 0;
    for (auto& s : subscriptions_)
      if (!unwanted(*s)) std::swap(subscriptions_[kept++], s);
    subscriptions_.resize(kept);
  }

  detail::kept_name name_;
  detail::home home_;
  std::vector<std::unique_ptr<subscription>> subscriptions_;
  std::size_t sweep_at_ = 16;
};

}  // namespace weir
