// SPDX-License-Identifier: MIT
#include <weir/error.hpp>

#include <weir/error_metadata.hpp>
#include <weir/outcome.hpp>

#include "core/error.hpp"
#include "core/loop.hpp"

namespace weir {

namespace {

/// The texts of std::error_code::message().
struct meaning {
  errc code;
  const char* text;
};
constexpr meaning meanings[] = {
    {errc::nested_run, "run inside a running loop"},
    {errc::deadlock, "no fiber can continue"},
    {errc::no_current_fiber, "called outside a fiber"},
    {errc::wrong_loop, "used on a loop that is not its home"},
    {errc::scope_closed, "the scope is closed"},
    {errc::scope_full, "the scope has its maximum of children"},
    {errc::never_started, "the child ended without saying that it had started"},
    {errc::already_started, "the child said twice that it had started"},
    {errc::already_taken, "the result was taken before"},
    {errc::already_waited, "waited for before"},
    {errc::empty_input, "nothing was given to choose from"},
    {errc::empty_job, "an empty callable was given as an operation"},
    {errc::invalid_argument, "invalid argument"},
    {errc::timeout, "the time limit was reached"},
    {errc::cancelled, "cancelled"},
    {errc::group, "several errors"},
    {errc::abandoned, "nothing is left that could answer"},
    {errc::loop_gone, "the other loop has ended"},
    {errc::would_deadlock, "this wait would not end"},
    {errc::overloaded, "overloaded"},
    {errc::governor_closed, "the governor is closed"},
    {errc::governor_full, "too many requests wait for the governor"},
    {errc::livelock, "the limit of steps was reached"},
    {errc::leak, "something was not released at the end"},
    {errc::always_violated, "an assertion did not hold"},
    {errc::trace_mismatch, "the trace does not fit the program"},
    {errc::group_waiting, "the group takes no more jobs"},
    {errc::circuit_open, "the circuit breaker lets no call through"},
    {errc::restart_limit, "failed too often in too short a time"},
    {errc::chaos_fault, "a fault was injected"},
    {errc::pool_full, "the pool has no room"},
    {errc::pool_closed, "the pool is closed"},
    {errc::queue_full, "the queue has no room"},
    {errc::queue_closed, "the queue is closed"},
    {errc::stream_busy, "the stream is being pulled already"},
    {errc::stream_interrupted, "the generator was interrupted and has ended"},
    {errc::lagged, "the subscriber was too slow and was disconnected"},
    {errc::agent_stopped, "the agent has ended"},
    {errc::agent_restarted, "the agent was restarted"},
    {errc::agent_crashed, "the agent has crashed"},
    {errc::mailbox_full, "the mailbox has no room"},
    {errc::call_cycle, "the agent waits for this very call"},
    {errc::no_current_agent, "called outside an agent of this type"},
    {errc::name_taken, "the name is taken"},
    {errc::no_such_child, "the supervisor has no such child"},
    {errc::child_running, "the child is running"},
    {errc::child_restarting, "the child is being restarted"},
    {errc::already_running, "the supervisor runs or has run"},
    {errc::not_running, "the supervisor does not run"},
    {errc::terminal, "failed permanently"},
    {errc::outcome_unknown, "a crash left unknown whether it was done"},
    {errc::inside_step, "not allowed inside a step"},
    {errc::not_journaled, "neither local to the run nor journaled"},
    {errc::unknown_awakeable, "no such awakeable"},
    {errc::unknown_handler, "no such handler"},
    {errc::id_in_use, "the id belongs to another run"},
    {errc::not_open, "the engine is not open"},
    {errc::already_open, "the engine is open or was opened before"},
    {errc::not_durable, "called outside a durable run"},
    {errc::journal_locked, "the journal is in use"},
    {errc::journal_corrupt, "the journal is damaged"},
    {errc::journal_failed, "the journal cannot be written any more"},
    {errc::journal_full, "no space for the journal"},
    {errc::wrong_key, "not the key of this journal"},
    {errc::bad_data, "the data does not have the expected form"},
    {errc::too_large, "larger than the limit"},
    {errc::closed, "closed"},
    {errc::busy, "in use by another operation"},
    {errc::end_of_stream, "ended too early"},
    {errc::too_long, "longer than the limit"},
    {errc::host_not_found, "the host was not found"},
    {errc::tls_failed, "the TLS handshake has failed"},
    {errc::tls_truncated, "the TLS stream was cut off"},
    {errc::too_many_redirects, "redirected too often"},
    {errc::read_only, "a shared handler does not change its object"},
    {errc::no_object, "called outside the handlers of an object"},
};

class weir_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir"; }
  std::string message(int code) const override {
    for (const meaning& m : meanings)
      if (m.code == static_cast<errc>(code)) return m.text;
    return "unknown error of weir";
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const weir_category category;
  return category;
}

std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

error::error(errc code) : error(code, make_error_code(code).message()) {}
error::error(errc code, const std::string& what) : error(make_error_code(code), what) {}
error::error(std::error_code code, const std::string& what)
    : std::system_error(code), text_(std::make_shared<std::string>(what)) {}
const char* error::what() const noexcept { return text_->c_str(); }

timeout_error::timeout_error() : error(errc::timeout) {}
timeout_error::timeout_error(const std::string& what) : error(errc::timeout, what) {}

namespace {

/// Of an error without facts of its own. It is not destroyed: errors may outlive it.
const detail::terminal_facts& usual_facts() {
  static const auto* const usual = new detail::terminal_facts;
  return *usual;
}

}  // namespace

terminal_error::terminal_error(const std::string& message, int status)
    : error(errc::terminal, message) {
  if (status == usual_facts().status) return;
  facts_ = std::make_shared<const detail::terminal_facts>(detail::terminal_facts{status});
}

terminal_error::terminal_error(const std::string& message,
                               std::shared_ptr<const detail::terminal_facts> facts)
    : error(errc::terminal, message), facts_(std::move(facts)) {}

terminal_error& terminal_error::with(std::string_view key, std::string_view value) & {
  auto changed = std::make_shared<detail::terminal_facts>(facts_ ? *facts_ : usual_facts());
  changed->metadata.insert_or_assign(std::string(key), std::string(value));
  facts_ = std::move(changed);
  return *this;
}

terminal_error&& terminal_error::with(std::string_view key, std::string_view value) && {
  return std::move(with(key, value));
}

int terminal_error::status() const noexcept {
  return facts_ ? facts_->status : usual_facts().status;
}

const error_metadata& terminal_error::metadata() const noexcept {
  return facts_ ? facts_->metadata : usual_facts().metadata;
}

namespace {

std::string cancelled_text(const cancel_reason& reason) {
  std::string text = "cancelled (";
  text.append(to_string(reason.kind)).append(")");
  if (!reason.message.empty()) text.append(": ").append(reason.message);
  return text;
}

}  // namespace

cancelled_error::cancelled_error(const cancel_reason& reason)
    : error(errc::cancelled, cancelled_text(reason)),
      reason_(new cancel_reason(reason), [](cancel_reason* dying) {
        detail::bury(std::move(dying->cause));
        delete dying;
      }) {}
const cancel_reason& cancelled_error::reason() const noexcept { return *reason_; }

namespace detail {

void raise(errc code, const std::string& what) { throw error(code, what); }

std::exception_ptr make_error(errc code, const std::string& what) {
  return std::make_exception_ptr(error(code, what));
}

errc errc_of(const error& e) noexcept { return static_cast<errc>(e.code().value()); }

const char* what_of(const std::exception& e) noexcept {
  const char* const text = e.what();
  return text == nullptr ? "an exception without a text" : text;
}

std::string running_loop_text() {
  loop* const here = loop::here();
  return here == nullptr ? "a thread without a loop" : "loop '" + here->own_door().name() + "'";
}

void raise_outside_simulation(const std::string& what) {
  raise(errc::wrong_loop, what + " on another thread; simulated programs run on one");
}

void raise_forked(const std::string& what, const char* maker) {
  raise(errc::wrong_loop, what + " belongs to the process that " + maker +
                              " it, and this is a forked child; end the child with exec or _exit");
}

void raise_no_current_fiber(const char* what) {
  raise(errc::no_current_fiber,
        std::string(what) + " called outside a fiber; call it from code that weir::run runs");
}
void raise_cancelled(const cancel_reason& reason) { throw cancelled_error(reason); }
[[noreturn]] void raise_empty_job() {
  raise(errc::empty_job,
        "empty callable given as an operation; give a function that can be called");
}

// ------------------------------------------------------------------ outcomes

namespace {

const std::vector<std::exception_ptr> no_errors;

}  // namespace

const std::vector<std::exception_ptr>& outcome_base::suppressed() const noexcept {
  return noted_ ? noted_problem_->notes.suppressed : no_errors;
}
const std::vector<std::exception_ptr>& outcome_base::cleanup() const noexcept {
  return noted_ ? noted_problem_->notes.cleanup : no_errors;
}

void outcome_base::clear_all() noexcept {
  if (noted_) {
    delete noted_problem_;
  } else if (state_ == outcome_state::error) {
    error_.~exception_ptr();
  } else if (state_ == outcome_state::cancelled) {
    reason_.~reason_ref();
  }
  noted_ = false;
  state_ = outcome_state::taken;
}

void outcome_base::set_error(std::exception_ptr error) noexcept {
  if (noted_) {
    noted_problem_->error = std::move(error);
  } else {
    clear_problem();
    new (&error_) std::exception_ptr(std::move(error));
  }
  state_ = outcome_state::error;
}

void outcome_base::set_cancelled(reason_ref reason) noexcept {
  if (noted_) {
    noted_problem_->reason = std::move(reason);
  } else {
    clear_problem();
    new (&reason_) reason_ref(std::move(reason));
  }
  state_ = outcome_state::cancelled;
}

outcome_notes& outcome_base::notes() {
  if (noted_) return noted_problem_->notes;
  auto box = std::make_unique<noted_problem>();
  if (state_ == outcome_state::error) {
    box->error = std::move(error_);
    error_.~exception_ptr();
  } else if (state_ == outcome_state::cancelled) {
    box->reason = std::move(reason_);
    reason_.~reason_ref();
  }
  noted_problem_ = box.release();
  noted_ = true;
  return noted_problem_->notes;
}

void outcome_base::copy_all(const outcome_base& other) {
  if (other.is_error()) set_error(other.error());
  if (other.is_cancelled()) set_cancelled(other.reason_reference());
  if (const outcome_notes* theirs = other.notes_or_null()) notes() = *theirs;
}

void outcome_base::rethrow_problem() const {
  switch (state_) {
    case outcome_state::error:
      std::rethrow_exception(error());
    case outcome_state::cancelled:
      raise_cancelled(*reason_reference());
    case outcome_state::taken:
      raise(errc::already_taken,
            "the result was taken before; await the future by reference "
            "(an lvalue) to read it several times");
    default:
      raise(errc::invalid_argument, "the outcome is not there yet");
  }
}

}  // namespace detail
}  // namespace weir
