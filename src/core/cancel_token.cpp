// SPDX-License-Identifier: MIT
#include <weir/cancel_token.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <weir/detail/core/run_rules.hpp>

#include "core/cancel_tree.hpp"
#include "core/error.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

/// One with_token that waits for one state. Shared by the region (on its loop) and the state. Only
/// the home loop touches the region's pointer, so a region that ends first just clears it.
struct token_registration {
  token_region* region = nullptr;
  door_ref home;
  std::uint32_t loop_number = 0;  // an inner loop's differs from its door's
  std::size_t place = 0;          // in the state's list; guarded by the state's mutex
};

namespace {

/// Notifies a region on another loop that its token fired.
struct fired_message final : message {
  fired_message(std::shared_ptr<token_registration> r, cancel_reason why)
      : to(std::move(r)), reason(std::move(why)) {}
  void deliver(loop&) noexcept override {
    if (to->region != nullptr) to->region->fire(reason);
    delete this;
  }
  void refuse() noexcept override { delete this; }
  std::shared_ptr<token_registration> to;
  cancel_reason reason;
};

}  // namespace

/// Shared by a source and its tokens. The mutex guards `reason_`, `order_` and `waiting_`; two
/// atomics are read without it; the rest is set before the state is shared.
class cancel_state {
 public:
  bool fired() const noexcept { return fired_.load(std::memory_order_acquire); }
  void require_here() const { made_.require_here({"cancel token", {}}); }
  bool can_fire() const noexcept {
    return sources_.load(std::memory_order_acquire) > 0 || linked_.stop_possible();
  }

  void add_source() noexcept { sources_.fetch_add(1, std::memory_order_relaxed); }
  void drop_source() noexcept {
    if (sources_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    // Loops that sleep only because this might fire must check for a deadlock.
    const std::lock_guard lock(mutex_);
    for (const auto& r : waiting_) r->home->wake();
  }

  void fire(const cancel_reason& reason) {
    if (in_dead_world()) return;
    std::vector<std::shared_ptr<token_registration>> registered;
    {
      const std::lock_guard lock(mutex_);
      if (reason_) return;
      refuse_foreign();
      reason_ = reason;
      order_ = next_order.fetch_add(1, std::memory_order_relaxed);
      fired_.store(true, std::memory_order_release);
      registered.swap(waiting_);
    }
    loop* here = loop::here();
    for (const auto& r : registered) {
      if (here != nullptr && here->serial() == r->loop_number) {
        if (r->region != nullptr) r->region->fire(reason);
      } else {
        r->home->post(*new fired_message(r, reason));
      }
    }
  }
  /// Its position among all fired states. REQUIRES: it has fired.
  std::uint64_t order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  std::optional<cancel_reason> reason() const {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  /// False if it has already fired.
  bool add(const std::shared_ptr<token_registration>& r) {
    const std::lock_guard lock(mutex_);
    if (reason_) return false;
    r->place = waiting_.size();
    waiting_.push_back(r);
    return true;
  }
  void remove(const std::shared_ptr<token_registration>& r) noexcept {
    const std::lock_guard lock(mutex_);
    const std::size_t place = r->place;
    if (place >= waiting_.size() || waiting_[place] != r) return;  // it has fired
    waiting_.back()->place = place;
    waiting_[place] = std::move(waiting_.back());
    waiting_.pop_back();
  }

  struct on_stop {
    cancel_state* state;
    void operator()() const {
      state->fire(cancel_reason(cancel_kind::user, "stop was requested of a std::stop_token"));
    }
  };
  /// Follows a std::stop_token. Called once, before this state is shared.
  void follow(std::stop_token stop) {
    linked_ = stop;
    callback_.emplace(std::move(stop), on_stop{this});
  }

 private:
  /// A simulated program runs on one thread, and may be cancelled only there.
  void refuse_foreign() const {
    for (const auto& r : waiting_)
      if (r->home->simulated() && r->home->thread != std::this_thread::get_id())
        raise_outside_simulation("cancel of a token that simulated loop '" + r->home->name() +
                                 "' waits for,");
  }

  const made_in_run made_;
  mutable std::mutex mutex_;
  std::optional<cancel_reason> reason_;
  std::uint64_t order_ = 0;
  static inline std::atomic<std::uint64_t> next_order{0};
  std::vector<std::shared_ptr<token_registration>> waiting_;
  std::atomic<bool> fired_{false};
  std::atomic<int> sources_{0};
  std::stop_token linked_;
  std::optional<std::stop_callback<on_stop>> callback_;
};

// ------------------------------------------------------------------ the region

token_region::token_region(state_list states)
    : plain_region(region_kind::token, "with_token"), states_(std::move(states)) {}

token_region::~token_region() {
  for (std::size_t i = 0; i < registrations_.size(); ++i) {
    registrations_[i]->region = nullptr;
    states_[i]->remove(registrations_[i]);
  }
  loop::here()->token_regions().remove(*this);
}

bool token_region::may_start(outcome_base& out) {
  for (const auto& state : states_) state->require_here();
  loop& here = *loop::here();
  here.token_regions().add(*this);
  const cancel_state* first = nullptr;  // among the fired ones
  for (const auto& state : states_) {
    auto r = std::make_shared<token_registration>();
    r->region = this;
    r->home = here.shared_door();
    r->loop_number = here.serial();
    if (!state->add(r) && (first == nullptr || state->order() < first->order()))
      first = state.get();
    registrations_.push_back(std::move(r));
  }
  if (first != nullptr) out.set_cancelled(make_reason(*first->reason()));
  return first == nullptr;
}

void token_region::fire(const cancel_reason& reason) noexcept {
  if (cancel_requested()) return;
  cancel_reason why = reason;
  if (why.when == time_point{}) why.when = loop::here()->now();
  cancel_tree::cancel(*this, make_reason(std::move(why)), false);
}

bool token_region::can_still_fire() const noexcept {
  return !cancel_requested() &&
         std::any_of(states_.begin(), states_.end(), [](const auto& s) { return s->can_fire(); });
}

void token_list::add(token_region& r) noexcept {
  r.next_on_loop = first_;
  if (first_ != nullptr) first_->at_on_loop = &r.next_on_loop;
  first_ = &r;
  r.at_on_loop = &first_;
}

void token_list::remove(token_region& r) noexcept {
  if (r.at_on_loop == nullptr) return;
  *r.at_on_loop = r.next_on_loop;
  if (r.next_on_loop != nullptr) r.next_on_loop->at_on_loop = r.at_on_loop;
  r.at_on_loop = nullptr;
}

bool token_list::can_fire() const noexcept {
  for (const token_region* r = first_; r != nullptr; r = r->next_on_loop)
    if (r->can_still_fire()) return true;
  return false;
}

}  // namespace detail

// ------------------------------------------------------------------ source and token

bool cancel_token::cancel_requested() const {
  for (const auto& state : states_) state->require_here();
  return std::any_of(states_.begin(), states_.end(), [](const auto& s) { return s->fired(); });
}

cancel_token cancel_token::any(const cancel_token& a, const cancel_token& b) {
  detail::state_list both = a.states_;
  for (const auto& s : b.states_)
    if (std::find(both.begin(), both.end(), s) == both.end()) both.push_back(s);
  return cancel_token(std::move(both));
}

cancel_source::cancel_source() : state_(std::make_shared<detail::cancel_state>()) {
  state_->add_source();
}
cancel_source::cancel_source(const cancel_source& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->add_source();
}
cancel_source& cancel_source::operator=(cancel_source other) noexcept {
  state_.swap(other.state_);
  return *this;
}
cancel_source::~cancel_source() {
  if (state_ != nullptr) state_->drop_source();
}

// By value like scope::cancel and child::cancel.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void cancel_source::cancel(cancel_reason reason) {
  if (state_ == nullptr) return;
  state_->require_here();
  state_->fire(reason);
}
bool cancel_source::cancel_requested() const {
  if (state_ == nullptr) return false;
  state_->require_here();
  return state_->fired();
}
cancel_token cancel_source::token() const {
  return state_ == nullptr ? cancel_token() : cancel_token(detail::state_list{state_});
}

cancel_token link(std::stop_token stop) {
  detail::require_no_run("link");
  auto state = std::make_shared<detail::cancel_state>();
  state->follow(std::move(stop));
  return cancel_token(detail::state_list{std::move(state)});
}

}  // namespace weir
