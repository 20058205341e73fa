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
#include <weir/backoff.hpp>
#include <weir/detail/agent_core.hpp>
#include <weir/detail/op.hpp>
#include <weir/duration.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/overflow.hpp>
#include <weir/scope.hpp>
#include <weir/task.hpp>

namespace weir {

/// Who is restarted when a child has to be.
enum class strategy : std::uint8_t {
  one_for_one,   ///< the child
  one_for_all,   ///< all children
  rest_for_one,  ///< the child and those added after it
  dynamic,       ///< the child; at the end all children are stopped at once, not one by one, and
                 ///< a child that was terminated or has finished is forgotten
};

/// Which ends of a child are followed by another life.
enum class restart : std::uint8_t {
  permanent,  ///< all
  transient,  ///< errors and cancellations
  temporary,  ///< none, and the supervisor forgets the child
};

/// Whether the end of significant children ends their supervisor.
enum class auto_shutdown : std::uint8_t {
  never,
  any_significant,  ///< of the first one
  all_significant,  ///< of the last one
};

enum class child_state : std::uint8_t {
  running,     ///< it has a life, perhaps one that is being started or stopped
  restarting,  ///< it waits for the next one, or that is being started
  stopped,     ///< it has none
  zombie,      ///< it was told to stop, its limit is over, and it still lives
};

struct no_wait_t {};
/// A child that is cancelled at once when it is to stop.
inline constexpr no_wait_t no_wait{};
struct no_limit_t {};
/// A child that may take any time to stop.
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

/// A life of a child ended with an error. What `on_crash` is told.
struct crash_info {
  std::string_view child;      ///< its name
  std::exception_ptr error;    ///< see weir::describe
  std::uint64_t restarts = 0;  ///< of this child, until now
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

/// What on_crash was given.
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

/// What a supervisor and its ref have in common.
class supervisor_face {
 public:
  /// Adds an agent. `args` are copied and kept for further lives; those of a temporary child are
  /// moved. While the supervisor runs, the child is started.
  /// errc::invalid_argument: bad options, a name that another child has, arguments that cannot be
  /// copied. errc::not_running: the supervisor is stopping, or has ended.
  template <class T, class... Args>
  agent_ref<T> add(child_options options = {}, Args&&... args) {
    agent_ref<T> made = make_agent<T>(prepare_agent(options), std::forward<Args>(args)...);
    adopt_agent(options, made.core());
    return made;
  }
  /// Adds a callable that gives a task (or a wait); it is called for each life.
  template <class F>
  void add_task(child_options options, F&& fn) {
    using kept = std::decay_t<F>;
    static_assert(callable_op<kept>,
                  "add_task takes a callable that returns weir::task<>: a task runs only once, and "
                  "a child may be started again");
    check_task(options, is_empty_callable(fn));
    adopt_task(options, std::make_unique<repeatable_call<kept>>(std::forward<F>(fn)));
  }
  /// Adds a supervisor that has not been run. It runs as a child of this one, and each further life
  /// of it begins with the children that it has now, and an empty window.
  supervisor_ref add_supervisor(child_options options, supervisor&& inner);

  /// Calls `fn(const crash_info&)` for each life of a child that ends with an error, its
  /// constructor and a nested supervisor that gave up included; on this supervisor's loop, before
  /// the restart. Kept as long as the supervisor; several are called in the order in which they
  /// were given. It must not wait; if it throws, the error is ignored and counted (event
  /// `observer_failed`).
  template <class F>
  void on_crash(F&& fn) {
    using kept = std::decay_t<F>;
    static_assert(std::is_invocable_v<kept&, const crash_info&>,
                  "on_crash takes a function with the parameter const weir::crash_info&");
    static_assert(!operation<std::invoke_result_t<kept&, const crash_info&>>,
                  "on_crash takes a plain function, which cannot wait; let it push into a queue");
    listen(std::make_unique<crash_function<kept>>(std::forward<F>(fn)));
  }

  /// The newest first.
  std::vector<child_info> which_children() const;
  child_counts count_children() const;

  /// Starts a child that is stopped, and returns when it is started; its error if it could not be.
  /// errc::no_such_child, child_running, child_restarting, not_running; as the next two.
  task<> restart_child(std::string_view name);
  /// Stops a child and keeps what is needed to start it again, unless it is temporary or the
  /// strategy is dynamic. Returns when it has ended, or is a zombie. Of an ancestor of the caller:
  /// errc::call_cycle.
  task<> terminate_child(std::string_view name);
  /// Forgets a child that is stopped.
  task<> delete_child(std::string_view name);
  /// Stops the children and ends run(); returns when it has ended. At once if it does not run.
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

/// Keeps its children alive: starts them in order, restarts them by its rules, stops them in
/// reverse order.
///
/// Requires: its home loop only, which is the first one that uses it; children may live on others.
/// Passive until `run()`.
/// Ensures: a child has one life at a time: the next one begins when the last one and all its
/// cleanup have ended. Each end of a life is judged once; one that the supervisor asked for is
/// expected and changes nothing. When more than `max_restarts` restarts lie within `within`, it
/// stops its children and `run()` throws restart_limit_error.
/// Cancels: a cancellation of `run()` reaches the children in their order of stopping, within their
/// limits; then it goes on unwinding. When a grace around it is over, they are cancelled at once.
/// Costs: O(1) per child that is added, started, restarted, stopped or forgotten.
class supervisor : public detail::supervisor_face {
 public:
  explicit supervisor(supervisor_options options = {});
  supervisor(supervisor&&) noexcept = default;
  supervisor& operator=(supervisor&&) noexcept = default;

  /// Starts the children, and ends when it was stopped, by auto-shutdown, by cancellation, or with
  /// an error: that of a child that could not be started the first time, or restart_limit_error.
  /// Once: errc::already_running.
  task<> run();

 private:
  friend class detail::supervisor_face;
};

/// A supervisor that is a child of another one: everything but `run`. Valid across its restarts.
class supervisor_ref : public detail::supervisor_face {
 private:
  friend class detail::supervisor_face;
  using supervisor_face::supervisor_face;
};

static_assert(std::is_trivially_destructible_v<supervisor_options>);
static_assert(std::is_trivially_destructible_v<child_options>);

}  // namespace weir
