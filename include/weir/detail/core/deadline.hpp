// SPDX-License-Identifier: MIT
// The machinery of <weir/policy/deadline.hpp>.
#pragma once

#include <utility>

#include <weir/detail/core/composite.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/duration.hpp>

namespace weir {

namespace detail {

struct time_limit {
  duration length;  // counted from the start of the operation; or
  time_point at;    // absolute
  bool absolute;
};

struct timeout_region final : limited_region {
  using setup = time_limit;
  explicit timeout_region(time_limit limit);
  bool may_start(outcome_base& out);
  verdict judge(outcome_base& out);

 private:
  time_limit limit_;
};

std::exception_ptr timeout_of(const time_limit& limit);
/// Event: the operation ended after its limit, with a value or with an error that wins over the
/// timeout.
void emit_late(const time_limit& limit, bool failed);

/// The other arm of with_timeout over a wait.
class limit_wait : public simple_wait<limit_wait, local_wait>, public deadline_node {
 public:
  using args = time_limit;
  using result = void;
  explicit limit_wait(time_limit&& limit) noexcept : limit_(limit) {}
  /// Fixes the point in time and the order among equal ones.
  void begin() noexcept;
  time_point at() const noexcept { return at_; }
  bool passed() const noexcept;
  bool try_now() const noexcept { return false; }
  void arm() noexcept;
  cancel_result withdraw() noexcept override;
  void describe(dump_line& line) const override;
  void expired() noexcept override { complete(); }
  void take() const noexcept {}
  const time_limit& limit() const noexcept { return limit_; }

 private:
  time_limit limit_;
  time_point at_{};
  bool fixed_ = false;
};

/// A wait under a time limit: both form one composite wait, nothing is allocated.
template <class W>
class timed_wait : public arms_wait {
 public:
  struct args {
    typename W::args inner;
    time_limit limit;
  };
  using result = typename W::result;
  static constexpr bool home_bound = is_home_bound<W>;

  explicit timed_wait(args&& a) : inner_(std::move(a.inner)), limit_(std::move(a.limit)) {
    links_[0].owner = links_[1].owner = this;
    links_[1].index = 1;
  }
  bool try_now() { return poll(); }
  void arm() noexcept { arm_rest(); }
  // Past limits are noticed before the operation is started; an outer limit takes precedence over
  // an inner one.
  bool poll() override {
    limit_.begin();
    // A remote operation learns its deadline.
    if constexpr (requires { inner_.limit_to(limit_.at()); }) inner_.limit_to(limit_.at());
    return limit_.passed() && !refused() ? give_up() : try_arms();
  }
  bool failed() const noexcept { return broken() || !has_result() || inner_.failed(); }
  result take() {
    rethrow_problem();
    if (!has_result()) std::rethrow_exception(timeout_of(limit_.limit()));
    if (links_[1].state == arm_link::phase::completed) emit_late(limit_.limit(), inner_.failed());
    return inner_.take();
  }
  void describe(dump_line& line) const override { inner_.describe(line); }

 protected:
  const W& inner() const noexcept { return inner_; }
  // A remote operation may have ended with a value or an error while it was being cancelled.
  bool has_result() const noexcept {
    if (links_[0].state == arm_link::phase::completed) return true;
    if constexpr (requires { inner_.ended_by_itself(); }) return inner_.ended_by_itself();
    return false;
  }

 private:
  // Whether the operation is refused regardless of the limit.
  bool refused() {
    if constexpr (requires { inner_.is_refused(); }) return inner_.is_refused();
    return false;
  }
  bool give_up() noexcept {
    links_[0].state = arm_link::phase::idle;
    links_[1].state = arm_link::phase::completed;
    return true;
  }
  std::size_t arm_count() const noexcept override { return 2; }
  wait& arm_at(std::size_t i) noexcept override {
    return i == 0 ? static_cast<wait&>(inner_) : limit_;
  }
  arm_link& link_at(std::size_t i) noexcept override { return links_[i]; }

  W inner_;
  limit_wait limit_;
  arm_link links_[2];
};

template <class Op>
auto limited(time_limit limit, Op&& op) {
  using plain = held_t<Op>;
  if constexpr (is_pending<plain>) {
    using wait_type = timed_wait<typename plain::wait_type>;
    return pending<wait_type>({std::forward<Op>(op).release(), limit});
  } else {
    return run_region<result_t<plain>, timeout_region, plain>(limit, std::forward<Op>(op));
  }
}

}  // namespace detail
}  // namespace weir
