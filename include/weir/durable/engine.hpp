// SPDX-License-Identifier: MIT
// Durable execution: coroutines that survive a crash of their process, on an embedded journal.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/broadcast.hpp>
#include <weir/detail/durable/handler.hpp>
#include <weir/durable/awakeable.hpp>
#include <weir/durable/call.hpp>
#include <weir/durable/object.hpp>
#include <weir/durable/replay_report.hpp>
#include <weir/durable/serde.hpp>
#include <weir/durable/step.hpp>
#include <weir/duration.hpp>
#include <weir/policy/absorb.hpp>
#include <weir/scope.hpp>
#include <weir/sim/disk.hpp>

namespace weir {
namespace detail {
class durable_run;
class engine_core;
class run_hold;
/// A run that was started or attached to.
struct begun_run {
  std::shared_ptr<run_hold> hold;
  std::string id;
};
}  // namespace detail

namespace durable {

/// `always`: acknowledged operations are on the disk; `never_for_tests`: without fsync.
enum class sync : std::uint8_t { always, never_for_tests };

struct engine_options {
  std::string_view path{};        ///< the directory of the journal; created if missing
  std::int64_t max_resume = 256;  ///< runs that are replayed at the same time
  duration retention = std::chrono::hours(24 * 7);
  durable::sync sync = durable::sync::always;
  std::int64_t segment_bytes = std::int64_t{64} << 20;  ///< at least 64 KiB
  weir::disk* disk = nullptr;                           ///< null: the machine's
  std::string_view encryption_key{};             ///< 32 bytes; empty: payloads are not encrypted
  std::span<const std::string_view> old_keys{};  ///< of what was written before, if different
  std::int64_t max_live = 10'000;  ///< unfinished runs that have their frames in memory
  bool report_blocked = true;      ///< a line on stderr for each run that is blocked
};

struct start_options {
  std::string_view id{};           ///< empty: one is generated
  std::string_view key{};          ///< of the object, for a handler of an object
  std::string_view idempotency{};  ///< the same key on the same handler attaches to that run
};

struct handler_options {
  int version = 1;
};

struct fork_options {
  std::string_view id{};  ///< of the new run; empty: one is generated
};

enum class run_state : std::uint8_t { running, suspended, blocked, completed, failed, cancelled };
std::string_view to_string(run_state state) noexcept;

struct run_info {
  std::string id;
  std::string handler;
  int version = 1;
  run_state state = run_state::running;
  std::string message;  ///< why it is blocked or has failed
};

struct run_event {
  std::string id;
  run_state state = run_state::running;
  std::string message;
};

struct list_options {
  std::optional<run_state> state{};
  std::string_view handler{};
};

/// A handle to a run. Copyable; it may outlive its engine: then errc::not_open. While there is one,
/// this engine does not forget the run, even if its retention is over. Destroy it on the loop of
/// the engine: elsewhere the run stays known until the engine ends.
template <class T>
class run_handle {
 public:
  explicit run_handle(detail::begun_run run) : hold_(std::move(run.hold)), id_(std::move(run.id)) {}

  const std::string& id() const noexcept { return id_; }
  /// Waits until the run has ended and its end is on the disk. A failed run: callers that already
  /// wait get its error, later callers weir::terminal_error with its message; a cancelled run:
  /// weir::cancelled_error. A blocked run is waited for as well.
  task<T> result(std::source_location site = std::source_location::current()) const {
    weir::detail::require_no_run("a durable::engine", {}, site);
    return wait(hold_, id_);
  }
  /// Recorded before it takes effect. `why` is the message of the reason. False: the run had ended.
  bool cancel(std::string_view why = {},
              std::source_location site = std::source_location::current()) const;

 private:
  static task<T> wait(std::shared_ptr<detail::run_hold> run, std::string id);
  std::shared_ptr<detail::run_hold> hold_;
  std::string id_;
};

/// Runs handlers durably: after a crash of the process every run continues where it was.
///
/// Requires: one engine per directory and one loop per engine; used on the loop of its scope.
/// Ensures: what was acknowledged (`start`, `resolve`, a result, ...) is on the disk; a step is run
/// at least once and its result recorded once; a run that cannot continue is `blocked`, not lost.
/// Cancels: at the end of its scope the bodies of steps are cancelled and joined; unfinished runs
/// are dropped from memory, nothing is recorded, and the next open resumes them. Errors:
/// errc::not_journaled in a durable run, outside of steps, with the line of the call;
/// errc::not_open before `open` and after `close`; errc::journal_failed for every call once the
/// disk has failed; errc::journal_full when there is no space.
class engine {
 public:
  /// The engine is a background child of `s`.
  engine(scope& s, engine_options options,
         std::source_location site = std::source_location::current());
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  /// A handler is a copyable callable `task<R>(I)` or `task<R>()`, optionally with a leading
  /// `weir::scope&`: the root scope of the run. Runs that were blocked for lack of this handler
  /// continue. A run keeps the version that it was started with; new runs take the highest one.
  template <class F>
  void add(std::string_view name, F handler, handler_options options = {},
           std::source_location site = std::source_location::current()) {
    require_outside(site);
    add_handler(name, detail::make_handler(std::move(handler), site), options.version);
  }

  /// Adds a keyed object: its handlers are called `name/handler`, and runs of them have a key, in
  /// the options of `start`, `call` and `send` (else errc::invalid_argument). Of the exclusive
  /// handlers of one key one runs at a time, in the order of their starts; a delayed one joins when
  /// its delay is over. State: weir::stored.
  void add_object(std::string_view name, std::initializer_list<object_handler> handlers,
                  handler_options options = {},
                  std::source_location site = std::source_location::current());

  /// Recovers the journal and resumes unfinished runs. errc::journal_locked if another engine has
  /// it open, errc::journal_corrupt (with file and offset) if it is damaged.
  task<> open(std::source_location site = std::source_location::current());
  /// Ends the engine before its scope ends.
  task<> close(std::source_location site = std::source_location::current());

  /// Starts a run; if a run with this id (or idempotency key) exists, attaches to it and ignores
  /// the input. errc::id_in_use if that run has another handler, errc::unknown_handler.
  template <class T = void, class In>
  task<run_handle<T>> start(std::string_view handler, start_options options, const In& input,
                            std::source_location site = std::source_location::current()) {
    require_outside(site);
    return started<T>(begin(handler, options, detail::encode_given(input)));
  }
  template <class T = void>
  task<run_handle<T>> start(std::string_view handler, start_options options = {},
                            std::source_location site = std::source_location::current()) {
    require_outside(site);
    return started<T>(begin(handler, options, detail::encode<void>()));
  }

  /// Answers an awakeable: true if it was the first answer, and the run has not ended. Durable on
  /// return. An id that is not from this journal: errc::unknown_awakeable. A value of another type
  /// than the run waits for: errc::bad_data, and nothing changes; if the run is not in memory, the
  /// type is not known, and a value of a wrong type blocks the run when it is replayed.
  template <class V>
  task<bool> resolve(std::string_view awakeable_id, const V& value,
                     std::source_location site = std::source_location::current()) {
    require_outside(site);
    return answer(awakeable_id, true, detail::encode_given(value));
  }
  task<bool> resolve(std::string_view awakeable_id,
                     std::source_location site = std::source_location::current()) {
    require_outside(site);
    return answer(awakeable_id, true, detail::encode<void>());
  }
  task<bool> reject(std::string_view awakeable_id, std::string_view message,
                    std::source_location site = std::source_location::current()) {
    require_outside(site);
    return answer(awakeable_id, false, std::string(message));
  }
  /// Sends a signal to a run, which keeps it until a wait takes it. False: there is no such run, or
  /// it has ended. Durable on return. errc::bad_data as in `resolve`, while the run waits for this
  /// signal.
  template <class V>
  task<bool> signal(std::string_view run_id, std::string_view name, const V& value,
                    std::source_location site = std::source_location::current()) {
    require_outside(site);
    return send_signal(run_id, name, detail::encode_given(value));
  }
  task<bool> signal(std::string_view run_id, std::string_view name,
                    std::source_location site = std::source_location::current()) {
    require_outside(site);
    return send_signal(run_id, name, detail::encode<void>());
  }

  std::optional<run_info> get(std::string_view id,
                              std::source_location site = std::source_location::current()) const;
  /// The runs, in start order.
  std::vector<run_info> list(list_options options = {},
                             std::source_location site = std::source_location::current()) const;
  /// Cancels a run; recorded before it takes effect. A blocked run ends at once as cancelled; its
  /// cleanup cannot run, and its message says so. False: there is no such run, or it has ended.
  bool cancel(std::string_view id, std::string_view why = {},
              std::source_location site = std::source_location::current());
  /// Starts a run that has the history of another one up to its command number `at_step`: the first
  /// `at_step` commands of its handler's own fiber, their answers, and what its other fibers did
  /// before the next one. The new run has the same input, the highest version and an id of its own;
  /// the other run, which may have ended or be blocked, is left alone. Returns the id; durable on
  /// return. errc::invalid_argument if there is no such run or it has fewer commands,
  /// errc::id_in_use, errc::unknown_handler.
  task<std::string> fork(std::string_view run_id, std::int64_t at_step, fork_options options = {},
                         std::source_location site = std::source_location::current());
  /// Starts a run again from the beginning, with the same id and input and the highest version. Its
  /// earlier life, if it has not ended, stops existing without cleanup, and the runs that it called
  /// are cancelled; answers to awakeables of that life come too late. Durable on return. Errors as
  /// `fork`.
  task<> restart(std::string_view run_id,
                 std::source_location site = std::source_location::current());
  /// Lets the command that a run is blocked on fail: the run is replayed, and the command throws
  /// weir::terminal_error(message), in every replay. Durable on return. errc::invalid_argument if
  /// there is no such run, or it is not blocked on a command that can fail.
  task<> skip(std::string_view run_id, std::string_view message,
              std::source_location site = std::source_location::current());

  /// Instead of `open`: replays all runs of the journal, ended or not, against the handlers that
  /// were added, on this thread. Runs no step, starts no timer, sends nothing, and changes no file.
  /// The journal may be in use. errc::invalid_argument if there is none, errc::journal_corrupt,
  /// errc::already_open if this engine was opened.
  task<replay_report> verify(std::source_location site = std::source_location::current());
  /// The same with one run. errc::invalid_argument if the journal does not have it.
  task<replay_report> replay(std::string_view run_id,
                             std::source_location site = std::source_location::current());

  /// The state changes of runs from now on; a subscriber that is too slow misses the oldest.
  subscription<run_event> events(std::source_location site = std::source_location::current());

 private:
  static void require_outside(std::source_location site) {
    detail::require_no_run("a durable::engine", {}, site);
  }
  void add_handler(std::string_view name, std::shared_ptr<const detail::handler_base> handler,
                   int version);
  task<detail::begun_run> begin(std::string_view handler, const start_options& options,
                                std::string input);
  task<bool> answer(std::string_view id, bool ok, std::string text);
  task<bool> send_signal(std::string_view id, std::string_view name, std::string value);
  task<replay_report> replay_runs(const char* what, std::string run_id);
  template <class T>
  static task<run_handle<T>> started(task<detail::begun_run> begins) {
    detail::begun_run run = co_await std::move(begins);
    co_return run_handle<T>(std::move(run));
  }

  std::shared_ptr<detail::engine_core> core_;
  child<void> service_;
};

}  // namespace durable

}  // namespace weir

#include <weir/detail/durable/engine_call.hpp>

namespace weir {

template <class T>
bool durable::run_handle<T>::cancel(std::string_view why, std::source_location site) const {
  detail::require_no_run("a durable::engine", {}, site);
  return detail::cancel_run(*hold_, id_, why);
}

template <class T>
task<T> durable::run_handle<T>::wait(std::shared_ptr<detail::run_hold> run, std::string id) {
  const std::string text = co_await detail::run_result(std::move(run), id);
  co_return detail::decode_as<T>(text, "the result of run", id);
}

namespace durable {

/// Runs `fn(engine&)` with a new engine, which ends with it; returns what `fn` returns.
template <class F>
auto with_engine(engine_options options, F fn,
                 std::source_location site = std::source_location::current()) {
  using result = std::remove_cvref_t<std::invoke_result_t<F&, engine&>>;
  static_assert(weir::detail::is_task<result>,
                "the body of with_engine must return weir::task<T> (make it a coroutine)");
  return weir::detail::engine_coroutine<typename result::value_type, F>::run(
      std::string(options.path), std::string(options.encryption_key), options, std::move(fn), site);
}

/// Replays the run in `file`, which `weir journal export` has written, against `handler`: on this
/// thread and without side effects, as engine::replay does. errc::bad_data if the file is not an
/// intact export; errors of the system if it cannot be read.
template <class F>
task<replay_report> replay(std::string_view file, F handler,
                           std::source_location site = std::source_location::current()) {
  weir::detail::require_no_run("durable::replay", {}, site);
  return weir::detail::replay_exported(std::string(file),
                                       weir::detail::make_handler(std::move(handler), site));
}

}  // namespace durable
}  // namespace weir
