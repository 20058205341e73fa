// SPDX-License-Identifier: MIT
// Part of <weir/supervisor.hpp>, which includes it after the declarations it needs.
#pragma once

#include <memory>
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
}  // namespace weir
