// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>

#include <weir/agent.hpp>
#include <weir/detail/agents/agent_core.hpp>
#include <weir/detail/core/op.hpp>
#include <weir/duration.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/overflow.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/scope.hpp>
#include <weir/task.hpp>

namespace weir {

/// Which children are restarted together with a child.
enum class strategy : std::uint8_t {
  one_for_one,   ///< the child
  one_for_all,   ///< all children
  rest_for_one,  ///< the child and those added after it
  dynamic,       ///< the child; at the end all children are stopped at once, not one by one, and a
                 ///< child that was terminated or has finished is removed
};

/// After which kinds of termination a child is restarted.
enum class restart : std::uint8_t {
  permanent,  ///< all
  transient,  ///< errors and cancellations
  temporary,  ///< none, and the child is removed
};

/// Whether the end of significant children ends their supervisor.
enum class auto_shutdown : std::uint8_t {
  never,
  any_significant,  ///< of the first one
  all_significant,  ///< of the last one
};

enum class child_state : std::uint8_t {
  running,     ///< it has a life, possibly one that is being started or stopped
  restarting,  ///< it waits for its next life, or that is being started
  stopped,     ///< it has none
  zombie,      ///< asked to stop, its limit has expired, and it still runs
};

struct no_wait_t {};
/// Shutdown limit: the child is cancelled at once.
inline constexpr no_wait_t no_wait{};
struct no_limit_t {};
/// Shutdown limit: the child may take any time to stop.
inline constexpr no_limit_t no_limit{};

/// How long a child may take to stop: any duration, `no_wait` or `no_limit`. Unset: 5 s; for a
/// supervisor `no_limit`.
class shutdown_limit {
 public:
  constexpr shutdown_limit() noexcept = default;
  template <class Rep, class Period>
  constexpr shutdown_limit(std::chrono::duration<Rep, Period> limit) noexcept
      : limit_(detail::saturating_cast(limit)), set_(true) {}
  constexpr shutdown_limit(no_wait_t) noexcept : set_(true) {}
  constexpr shutdown_limit(no_limit_t) noexcept : limit_(duration::max()), set_(true) {}
  constexpr shutdown_limit(unbounded_t) noexcept : shutdown_limit(no_limit) {}

  constexpr duration value_or(duration unset) const noexcept { return set_ ? limit_ : unset; }

 private:
  duration limit_{};
  bool set_ = false;
};

struct supervisor_options {
  weir::name name{};
  weir::strategy strategy = weir::strategy::one_for_one;
  std::int64_t max_restarts = 3;
  duration within = std::chrono::seconds(5);
  weir::auto_shutdown auto_shutdown = weir::auto_shutdown::never;
  std::source_location site = std::source_location::current();
};

/// From `capacity` on: for agents only, as in agent_options.
struct child_options {
  weir::name name{};
  weir::restart restart = weir::restart::permanent;
  shutdown_limit shutdown{};
  bool significant = false;
  weir::backoff backoff{};
  std::int64_t capacity = unbounded;
  weir::overflow overflow = weir::overflow::reject;
  loop_ref on{};
  weir::on_error on_error = weir::on_error::reply;
  mailbox on_restart = mailbox::drop;
  std::source_location site = std::source_location::current();
};

struct child_info {
  std::string name;
  child_state state = child_state::stopped;
  std::uint64_t restarts = 0;
};

/// A life of a child ended with an error; the argument of `on_crash` callbacks.
struct crash_info {
  std::string_view child;      ///< its name
  std::exception_ptr error;    ///< see weir::describe
  std::uint64_t restarts = 0;  ///< of this child, so far
  bool will_restart = false;   ///< false as well if the supervisor gives up
};

struct child_counts {
  std::size_t specs = 0;
  std::size_t active = 0;
  std::size_t supervisors = 0;
  std::size_t workers = 0;
};

class supervisor;
class supervisor_ref;

}  // namespace weir

#include <weir/detail/agents/supervisor.hpp>

namespace weir {

/// Starts its children in order, restarts them by its rules, stops them in reverse order.
///
/// Requires: its home loop only, which is the first one that uses it; children may run on others.
/// Passive until `run()`. Ensures: a child has one life at a time: the next one begins when the
/// last one and all its cleanup have ended. Each termination is handled once; a termination that
/// the supervisor requested is expected and changes nothing. When more than `max_restarts` restarts
/// lie within `within`, it stops its children and `run()` throws restart_limit_error. Cancels: a
/// cancellation of `run()` stops the children in stopping order, within their limits; then
/// unwinding continues. When an enclosing grace expires, they are cancelled at once. Costs: O(1)
/// per child that is added, started, restarted, stopped or removed.
class supervisor : public detail::supervisor_face {
 public:
  explicit supervisor(supervisor_options options = {});
  supervisor(supervisor&&) noexcept = default;
  supervisor& operator=(supervisor&&) noexcept = default;

  /// Starts the children, and ends by stop(), by auto-shutdown, by cancellation, or with an error:
  /// that of a child whose first start failed, or restart_limit_error. A second call:
  /// errc::already_running.
  task<> run();

 private:
  friend class detail::supervisor_face;
};

/// Refers to a supervisor that is a child of another one: everything but `run`. Valid across
/// restarts.
class supervisor_ref : public detail::supervisor_face {
 private:
  friend class detail::supervisor_face;
  using supervisor_face::supervisor_face;
};

static_assert(std::is_trivially_destructible_v<supervisor_options>);
static_assert(std::is_trivially_destructible_v<child_options>);

}  // namespace weir
