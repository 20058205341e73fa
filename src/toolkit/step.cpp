// SPDX-License-Identifier: MIT
#include <weir/step.hpp>

namespace weir::detail {

namespace {

retry_decision worth_another(void*, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const terminal_error&) {
    return retry_decision::stop();
  } catch (const cancelled_error&) {
    return retry_decision::stop();
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

duration step_attempts::after_failure(outcome_base& out) {
  if (out.is_cancelled()) return duration{-1};
  const duration pause = run_.after_failure(out, worth_another, nullptr);
  if (pause >= duration::zero()) return pause;
  try {
    std::rethrow_exception(out.error());
  } catch (const terminal_error&) {
  } catch (...) {
    out.set_error(std::make_exception_ptr(terminal_error(message_of(std::current_exception()))));
  }
  return pause;
}

}  // namespace weir::detail
