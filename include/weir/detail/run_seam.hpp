// SPDX-License-Identifier: MIT
// Where the scheduler meets a durable run: what is journaled goes through here, on every engine.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include <weir/detail/made_in_run.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>

namespace weir {
enum class cancel_result : std::uint8_t;
class scope;
namespace detail {

struct fiber;
struct strand;
struct timer_node;
class command_wait;

/// What a durable run does that its journal knows of.
enum class command_kind : std::uint8_t {
  none,
  timer,  // sleep
  limit,  // with_timeout
  step,
  step_once,
  call,
  send,
  awakeable,
  signal,   // waits for one
  promise,  // settles one
  absorb,   // a cancellation became a value
};
std::string_view to_string(command_kind kind) noexcept;

/// What the journal answers.
struct command_answer {
  enum class sort : std::uint8_t { none, value, error, cancelled };
  sort how = sort::none;
  errc code = errc::terminal;  // of an error
  std::string text;            // the encoded value, or the message of an error
};
/// The error or the cancellation of an answer, as an exception.
[[noreturn]] void raise_answer(const command_answer& answer);

/// Reads the text of a value as the type that the code expects; throws if it is of another one.
using answer_check = void (*)(std::string_view text);

/// The run that a handler starts.
struct run_request {
  std::string handler;
  std::string input;
  std::string id;
  std::string key;
  std::string idempotency;
  duration delay{};
};

/// A durable run, as its inner loop and the code in it see it. Everything that a run does is
/// repeated when it is replayed; what could come out otherwise is asked here.
///
/// Threads: that of its loop.
class run_seam {
 public:
  run_seam(const run_seam&) = delete;
  run_seam& operator=(const run_seam&) = delete;

  virtual std::string_view run_id() const noexcept = 0;

  // For the scheduler.
  /// A fiber was spawned by the running one; it has not begun.
  virtual void fiber_begins(fiber& f) = 0;
  virtual void fiber_ended(fiber& f) noexcept = 0;
  /// Arms a timer, as a command of the running fiber; `limit`: it is a deadline_node.
  virtual void arm_timer(timer_node& node, std::uint64_t when, bool limit) noexcept = 0;
  virtual void cancel_timer(timer_node& node) noexcept = 0;
  /// The coroutine of the handler is about to start; its errors name this place.
  virtual void handler_begins(std::source_location function) noexcept = 0;

  // For what handlers call.
  /// Whether there is an answer already; then the wait has it.
  virtual bool poll(command_wait& w) = 0;
  /// The running fiber waits for the answer from now on; a step or a call is started.
  virtual void issue(command_wait& w) = 0;
  /// The fiber shall not wait any more.
  virtual cancel_result withdraw(command_wait& w) noexcept = 0;
  struct awakeable_made {
    std::uint64_t key;
    std::string id;
  };
  /// Answers of another type than `type` reads are refused from then on.
  virtual awakeable_made make_awakeable(std::string_view name, answer_check type,
                                        std::source_location site) = 0;
  /// False if the promise was settled before; errc::bad_data if a fiber waits for another type.
  virtual bool settle_promise(std::string_view name, command_answer answer,
                              std::source_location site) = 0;
  /// Null if the promise is not settled.
  virtual const command_answer* peek_promise(std::string_view name) const = 0;
  /// Gives the id of the run that was started.
  virtual std::string send(run_request request, std::source_location site) = 0;
  /// A region in which the run's own cancellation becomes a value.
  virtual void enter_absorb(scope& region) = 0;
  /// `consumed`: it ended by the cancellation of the run.
  virtual void leave_absorb(scope& region, bool consumed) noexcept = 0;

 protected:
  run_seam() = default;
  ~run_seam() = default;
};

/// Whether a source file is one of the library's, so that it tells users nothing.
bool is_library_file(std::string_view file) noexcept;
/// The file and line of the user's code at which a strand is, or of the last await before it.
std::string place_in(const strand& s);
/// The same of the running code.
std::string running_place();
/// The run of the running code, null outside of runs. Inside a step: errc::inside_step.
run_seam* run_outside_step(const char* what);
/// The same, but errc::not_durable outside of runs.
run_seam& require_run(const char* what);

}  // namespace detail
}  // namespace weir
