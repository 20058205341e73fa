// SPDX-License-Identifier: MIT
// The interface between the scheduler and a durable run: everything that is journaled goes through
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include <weir/duration.hpp>
#include <weir/error.hpp>

namespace weir {
enum class cancel_result : std::uint8_t;
class scope;
namespace detail {

struct fiber;
struct strand;
struct terminal_facts;
struct timer_node;
class command_wait;

/// The journaled actions of a durable run.
enum class command_kind : std::uint8_t {
  none,
  timer,  // sleep
  limit,  // with_timeout
  step,
  step_once,
  call,
  send,
  awakeable,
  signal,   // waits for a signal
  promise,  // settles a promise
  absorb,   // a cancellation became a value
  patch,    // a marker: the run takes the new branch; not numbered
  stored,   // read a stored value of its object
};
std::string_view to_string(command_kind kind) noexcept;

/// What a handler may do with the stored values of its object.
enum class handler_kind : std::uint8_t {
  plain,      // it belongs to no object
  exclusive,  // one at a time per key; may change them
  shared,     // beside others; reads what was committed last
};

/// An answer of the journal.
struct command_answer {
  enum class kind : std::uint8_t { none, value, error, cancelled };
  kind how = kind::none;
  errc code = errc::terminal;                     // of an error
  std::string text;                               // the encoded value, or the message of an error
  std::shared_ptr<const terminal_facts> facts{};  // of a terminal error; null: none
};
/// Throws the error or cancellation of an answer.
[[noreturn]] void raise_answer(const command_answer& answer);

/// Decodes the text of a value as the type that the code expects; throws if it has another type.
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

/// A durable run, as seen by its inner loop and its code. A replay repeats everything that a run
/// does; everything that could have a different result goes through this interface.
///
/// Threads: that of its loop.
class run_seam {
 public:
  run_seam(const run_seam&) = delete;
  run_seam& operator=(const run_seam&) = delete;

  virtual std::string_view run_id() const noexcept = 0;

  // For the scheduler.
  /// The running fiber has spawned `f`, which has not started.
  virtual void fiber_begins(fiber& f) = 0;
  virtual void fiber_ended(fiber& f) noexcept = 0;
  /// Arms a timer, as a command of the running fiber; `limit`: it is a deadline_node.
  virtual void arm_timer(timer_node& node, std::uint64_t when, bool limit) noexcept = 0;
  virtual void cancel_timer(timer_node& node) noexcept = 0;
  /// The coroutine of the handler is about to start; errors of the run name this place.
  virtual void handler_begins(std::source_location function) noexcept = 0;

  // For what handlers call.
  /// Whether there is an answer already; it is then stored in the wait.
  virtual bool poll(command_wait& w) = 0;
  /// The running fiber starts to wait for the answer; starts a step or a call.
  virtual void issue(command_wait& w) = 0;
  /// The fiber stops waiting.
  virtual cancel_result withdraw(command_wait& w) noexcept = 0;
  struct awakeable_made {
    std::uint64_t key;
    std::string id;
  };
  /// From then on, answers that `type` cannot decode are refused.
  virtual awakeable_made make_awakeable(std::string_view name, answer_check type,
                                        std::source_location site) = 0;
  /// False if the promise was settled before; errc::bad_data if a fiber waits for another type.
  virtual bool settle_promise(std::string_view name, command_answer answer,
                              std::source_location site) = 0;
  /// Null if the promise is not settled.
  virtual const command_answer* peek_promise(std::string_view name) const = 0;
  /// Whether the run takes the branch that the patch `id` added.
  virtual bool patch(std::string_view id, std::source_location site) = 0;
  /// Returns the id of the started run.
  virtual std::string send(run_request request, std::source_location site) = 0;
  /// The key of the object that the handler belongs to; empty if it belongs to none.
  virtual std::string_view object_key() const noexcept = 0;
  /// Changes a stored value of the object with the end of this turn; without a value: clears it.
  /// errc::read_only in a shared handler. REQUIRES: object_key. (A wait of kind `stored` reads one:
  /// its answer is the encoded value, or an empty text if there is none.)
  virtual void set_stored(std::string_view name, std::optional<std::string> value,
                          std::source_location site) = 0;
  /// A region in which the run's own cancellation becomes a value.
  virtual void enter_absorb(scope& region) = 0;
  /// `consumed`: the region ended because the run was cancelled.
  virtual void leave_absorb(scope& region, bool consumed) noexcept = 0;

 protected:
  run_seam() = default;
  ~run_seam() = default;
};

}  // namespace detail
}  // namespace weir
