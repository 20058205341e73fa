// SPDX-License-Identifier: MIT
#include <weir/durable/step.hpp>

#include <weir/time.hpp>

#include "core/error.hpp"
#include "core/loop.hpp"
#include "toolkit/budget_core.hpp"

namespace weir::detail {

namespace {

retry_decision worth_another(void*, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const terminal_error&) {
    return retry_decision::stop();
  } catch (const cancelled_error&) {
    return retry_decision::stop();
  } catch (const weir::error&) {
    return !is_refusal(code_of(error));
  } catch (...) {
    return retry_decision::retry();
  }
}

/// The key of the local that marks the body of a step outside of durable runs.
constexpr char plain_mark = 0;

}  // namespace

task<std::string> function_body::attempt() { co_return call(); }

plain_step_region::plain_step_region(setup of)
    : local_region_base(&plain_mark, static_cast<step_source*>(of), "step") {}

std::string plain_step::key() {
  if (key_.empty()) key_ = uuid();
  return key_;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return what_of(e);
  } catch (...) {
    return "an exception of unknown type";
  }
}

std::shared_ptr<const terminal_facts> facts_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const terminal_error& e) {
    return e.facts();
  } catch (...) {
    return nullptr;
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
    const auto code = errc_of(e);
    return is_refusal(code) ? code : errc::terminal;
  } catch (...) {
    return errc::terminal;
  }
}

void check_step(const retry_options& given) {
  const retry_rules rules(given);
  if (rules.budget != nullptr) rules.budget->require_for_step();
}

duration step_attempts::after_failure(outcome_base& out) {
  if (out.is_cancelled()) return duration{-1};
  const duration pause = run_.after_failure(out, worth_another, nullptr);
  if (pause >= duration::zero() || is_refusal(code_of(out.error()))) return pause;
  try {
    std::rethrow_exception(out.error());
  } catch (const terminal_error&) {
  } catch (...) {
    out.set_error(std::make_exception_ptr(terminal_error(message_of(std::current_exception()))));
  }
  return pause;
}

}  // namespace weir::detail

namespace weir {

std::string step_key() {
  void* here = nullptr;
  if (detail::current != nullptr && detail::current_run == nullptr) {
    here = detail::find_local(&detail::step_mark);
    if (here == nullptr) here = detail::find_local(&detail::plain_mark);
  }
  if (here == nullptr) detail::raise_outside_step("step_key");
  return static_cast<detail::step_source*>(here)->key();
}

}  // namespace weir
