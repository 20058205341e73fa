// SPDX-License-Identifier: MIT
#include <weir/stream/error.hpp>

#include "core/loop.hpp"

namespace weir::detail {

struct stream_retry::state {
  explicit state(const retry_options& options)
      : rules(options), reset_on_item(options.reset_on_item) {
    run.emplace(rules);
  }
  retry_rules rules;
  bool reset_on_item;
  std::optional<retry_run> run;
  bool delivered = false;  // since the last failure
};

stream_retry::stream_retry(const retry_options& options)
    : state_(std::make_unique<state>(options)) {}
stream_retry::stream_retry(stream_retry&&) noexcept = default;
stream_retry::~stream_retry() = default;

void stream_retry::begin_attempt() { state_->run->begin_attempt(); }

void stream_retry::delivered() noexcept { state_->delivered = state_->reset_on_item; }

duration stream_retry::after_failure(std::exception_ptr error, retry_question ask,
                                     void* predicate) {
  if (std::exchange(state_->delivered, false)) {
    state_->run.emplace(state_->rules);
    state_->run->begin_attempt();
  }
  outcome<void> out;
  out.set_error(std::move(error));
  const duration pause = state_->run->after_failure(out, ask, predicate);
  if (pause < duration::zero()) std::rethrow_exception(out.error());
  return pause;
}

void emit_cleanup(const char* event) noexcept {
  const bool failed = std::string_view(event) == "cleanup_failed";
  if (loop* here = loop::here())
    here->emit(event, "stream", 0, 0, failed ? std::current_exception() : nullptr);
}

}  // namespace weir::detail
