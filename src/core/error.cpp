// SPDX-License-Identifier: MIT
#include <weir/error.hpp>

#include <weir/outcome.hpp>

namespace weir {

namespace {

class weir_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weir"; }
  std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::nested_run:
        return "run inside a running loop";
      case errc::deadlock:
        return "nothing can ever go on";
      case errc::no_current_fiber:
        return "called outside a fiber";
      case errc::wrong_loop:
        return "used on a loop that is not its home";
      case errc::scope_closed:
        return "the scope is closed";
      case errc::scope_full:
        return "the scope has its maximum of children";
      case errc::never_started:
        return "the child ended without saying that it had started";
      case errc::already_started:
        return "the child said twice that it had started";
      case errc::already_taken:
        return "the result was taken before";
      case errc::already_waited:
        return "waited for before";
      case errc::empty_input:
        return "nothing was given to choose from";
      case errc::empty_job:
        return "an empty callable was given as an operation";
      case errc::invalid_argument:
        return "invalid argument";
      case errc::timeout:
        return "the time limit was reached";
      case errc::cancelled:
        return "cancelled";
      case errc::group:
        return "several errors";
      case errc::abandoned:
        return "nobody is left who could answer";
      case errc::loop_gone:
        return "the other loop has ended";
      case errc::would_deadlock:
        return "waiting here could never end";
      case errc::overloaded:
        return "overloaded";
      case errc::governor_closed:
        return "the governor is closed";
      case errc::governor_full:
        return "too many wait for the governor";
      case errc::livelock:
        return "the limit of steps was reached";
      case errc::leak:
        return "something was left over at the end";
      case errc::always_violated:
        return "an assertion did not hold";
      case errc::trace_mismatch:
        return "the trace does not fit the program";
      case errc::group_waiting:
        return "the group takes no more jobs";
      case errc::circuit_open:
        return "the circuit breaker lets no call through";
      case errc::restart_limit:
        return "failed too often in too short a time";
      case errc::chaos_fault:
        return "a fault was injected";
      case errc::pool_full:
        return "the pool has no room";
      case errc::pool_closed:
        return "the pool is closed";
      case errc::queue_full:
        return "the queue has no room";
      case errc::queue_closed:
        return "the queue is closed";
      case errc::stream_busy:
        return "the stream is being pulled already";
      case errc::stream_interrupted:
        return "the generator was interrupted and has ended";
      case errc::lagged:
        return "the subscriber was too slow and was disconnected";
    }
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
error::error(errc code, const std::string& what)
    : std::system_error(make_error_code(code)), text_(std::make_shared<std::string>(what)) {}
const char* error::what() const noexcept { return text_->c_str(); }

timeout_error::timeout_error() : error(errc::timeout) {}
timeout_error::timeout_error(const std::string& what) : error(errc::timeout, what) {}

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
void raise_no_current_fiber(const char* what) {
  raise(errc::no_current_fiber,
        std::string(what) + " called outside a fiber; call it from code that weir::run runs");
}
void raise_cancelled(const cancel_reason& reason) { throw cancelled_error(reason); }
void raise_empty_job() {
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
