// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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

namespace detail {

class supervisor_core;

/// A task that a supervisor may run again.
class repeatable {
 public:
  repeatable() = default;
  repeatable(const repeatable&) = delete;
  repeatable& operator=(const repeatable&) = delete;
  virtual ~repeatable() = default;
  virtual fiber* make() = 0;
};

template <class F>
class repeatable_call final : public repeatable {
 public:
  template <class G>
  explicit repeatable_call(G&& fn) : fn_(std::forward<G>(fn)) {}
  fiber* make() override {
    if constexpr (plain_call<F>) {
      return scope::make([this] { return fn_(); });
    } else {
      return scope::make([this](context& c) { return fn_(c); });
    }
  }

 private:
  F fn_;
};

/// An `on_crash` callback.
class crash_listener {
 public:
  crash_listener() = default;
  crash_listener(const crash_listener&) = delete;
  crash_listener& operator=(const crash_listener&) = delete;
  virtual ~crash_listener() = default;
  virtual void call(const crash_info& crash) = 0;
};

template <class F>
class crash_function final : public crash_listener {
 public:
  template <class G>
  explicit crash_function(G&& fn) : fn_(std::forward<G>(fn)) {}
  void call(const crash_info& crash) override { (void)fn_(crash); }

 private:
  F fn_;
};

/// The common interface of a supervisor and its ref.
class supervisor_face {
 public:
  /// Adds an agent. `args` are copied and kept for restarts; those of a temporary child are moved.
  /// If the supervisor is running, the child is started. errc::invalid_argument: bad options, a
  /// name that another child has, arguments that cannot be copied. errc::not_running: the
  /// supervisor is stopping, or has ended.
  template <class T, class... Args>
  agent_ref<T> add(child_options options = {}, Args&&... args) {
    agent_ref<T> made = make_agent<T>(prepare_agent(options), std::forward<Args>(args)...);
    adopt_agent(options, made.core());
    return made;
  }
  /// Adds a callable that returns a task (or a wait); it is called for each life.
  template <class F>
  void add_task(child_options options, F&& fn) {
    using kept = std::decay_t<F>;
    static_assert(callable_op<kept>,
                  "add_task takes a callable that returns weir::task<>: a task runs only once, and "
                  "a child may be started again");
    check_task(options, is_empty_callable(fn));
    adopt_task(options, std::make_unique<repeatable_call<kept>>(std::forward<F>(fn)));
  }
  /// Adds a supervisor that has not been run. It runs as a child of this one; each restart of it
  /// begins with the children that it has now and an empty restart window.
  supervisor_ref add_supervisor(child_options options, supervisor&& inner);

  /// Calls `fn(const crash_info&)` for each life of a child that ends with an error, including
  /// errors of constructors and nested supervisors that gave up; on this supervisor's loop, before
  /// the restart. Kept as long as the supervisor; several are called in order of registration. It
  /// must not wait; if it throws, the error is ignored and counted (event `observer_failed`).
  template <class F>
  void on_crash(F&& fn) {
    using kept = std::decay_t<F>;
    static_assert(std::is_invocable_v<kept&, const crash_info&>,
                  "on_crash takes a function with the parameter const weir::crash_info&");
    static_assert(!operation<std::invoke_result_t<kept&, const crash_info&>>,
                  "on_crash takes a plain function, which cannot wait; let it push into a queue");
    listen(std::make_unique<crash_function<kept>>(std::forward<F>(fn)));
  }

  /// Newest first.
  std::vector<child_info> which_children() const;
  child_counts count_children() const;

  /// Starts a stopped child, and returns when it has started; throws its error if that fails.
  /// Errors: errc::no_such_child and not_running, also of the next two; child_running and
  /// child_restarting, also of delete_child.
  task<> restart_child(std::string_view name);
  /// Stops a child and keeps what is needed to restart it, unless it is temporary or the strategy
  /// is dynamic. Returns when it has ended, or is a zombie. If the child is an ancestor of the
  /// caller: errc::call_cycle.
  task<> terminate_child(std::string_view name);
  /// Removes a stopped child.
  task<> delete_child(std::string_view name);
  /// Stops the children and ends run(); returns when run() has ended, at once if it is not running.
  /// From a descendant: errc::call_cycle.
  task<> stop();

  std::string_view name() const;

 protected:
  supervisor_face() noexcept = default;
  explicit supervisor_face(std::shared_ptr<supervisor_core> core) noexcept
      : core_(std::move(core)) {}
  ~supervisor_face() = default;
  supervisor_face(const supervisor_face&) = default;
  supervisor_face(supervisor_face&&) noexcept = default;
  supervisor_face& operator=(const supervisor_face&) = default;
  supervisor_face& operator=(supervisor_face&&) noexcept = default;
  /// errc::invalid_argument if it was moved from.
  supervisor_core& core() const;

  std::shared_ptr<supervisor_core> core_;

 private:
  agent_setup prepare_agent(const child_options& options) const;
  void adopt_agent(const child_options& options, agent_core& made) const;
  void check_task(const child_options& options, bool empty) const;
  void listen(std::unique_ptr<crash_listener> listener) const;
  void adopt_task(const child_options& options, std::unique_ptr<repeatable> made) const;
};

}  // namespace detail

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
