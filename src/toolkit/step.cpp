// SPDX-License-Identifier: MIT
#include <weir/step.hpp>

#include "toolkit/budget_core.hpp"

namespace weir::detail {

namespace {

/// A mistake of the program, which another attempt would make again.
bool is_misuse(errc code) { return code == errc::inside_step || code == errc::not_journaled; }

retry_decision worth_another(void*, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const terminal_error&) {
    return retry_decision::stop();
  } catch (const cancelled_error&) {
    return retry_decision::stop();
  } catch (const weir::error&) {
    return !is_misuse(code_of(error));
  } catch (...) {
    return retry_decision::retry();
  }
}

}  // namespace

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

void raise_unrecordable() {
  throw terminal_error("the result of the step cannot be recorded: " +
                       message_of(std::current_exception()));
}

errc code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const weir::error& e) {
    const auto code = static_cast<errc>(e.code().value());
    return is_misuse(code) ? code : errc::terminal;
  } catch (...) {
    return errc::terminal;
  }
}

void check_step(const retry_options& given) {
  const retry_rules rules(given);
  if (rules.budget != nullptr) rules.budget->require_outside_runs();
}

duration step_attempts::after_failure(outcome_base& out) {
  if (out.is_cancelled()) return duration{-1};
  const duration pause = run_.after_failure(out, worth_another, nullptr);
  if (pause >= duration::zero() || is_misuse(code_of(out.error()))) return pause;
  try {
    std::rethrow_exception(out.error());
  } catch (const terminal_error&) {
  } catch (...) {
    out.set_error(std::make_exception_ptr(terminal_error(message_of(std::current_exception()))));
  }
  return pause;
}

}  // namespace weir::detail
