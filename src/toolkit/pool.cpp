// SPDX-License-Identifier: MIT
#include <weir/pool.hpp>

#include <string>

#include <weir/detail/core/region_await.hpp>

#include "core/counters.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"
#include "toolkit/pool_core.hpp"

namespace weir {

namespace detail {

namespace {

/// Run at the end of the owning scope: cancels the running jobs, joins the workers, and raises an
/// error that no caller has received.
task<> end_pool(std::shared_ptr<pool_core> core) {
  core->cancel(cancel_reason(cancel_kind::scope_ended));
  for (const auto& worker : core->workers()) {
    auto gone = worker;
    co_await quiet_wait_op<served_wait>(std::move(gone));
  }
  if (const std::exception_ptr error = core->take_error()) std::rethrow_exception(error);
}

// By value: the handle may be destroyed before the task starts.
task<> close_pool(std::shared_ptr<pool_core> core) {
  core->require_no_run();
  if (core->is_of_another_world()) core->raise_refusal(errc::wrong_loop);
  std::string name("pool '");
  name.append(core->name()).append("'");
  if (core->is_own_worker())
    raise(errc::would_deadlock, name + ": close called by one of its own jobs, which it waits for");
  if (!core->claim_close())
    raise(errc::already_waited, name + ": close or wait was called before; a pool is closed once");
  core->close();
  auto drained = core;
  co_await pending<drain_wait>(std::move(drained));
  if (const std::exception_ptr error = core->take_error()) std::rethrow_exception(error);
}

}  // namespace

}  // namespace detail

pool::pool(scope& s, const pool_options& options)
    : core_(std::make_shared<detail::pool_core>(options)), owned_by_scope_(true) {
  core_->require_no_run();
  s.require_open("pool");
  core_->start_workers();
  s.defer([core = core_] { return detail::end_pool(core); });
}

pool::pool(const pool_options& options)
    : core_(std::make_shared<detail::pool_core>(options)), owned_by_scope_(false) {
  core_->require_no_run();
  detail::require_no_loop_to_block("pool '" + core_->name() + "'");
  core_->start_workers();
}

pool::~pool() {
  if (!owned_by_scope_ && detail::loop::here() != nullptr)
    detail::fatal("pool '" + core_->name() +
                  "', made outside of loops, is destroyed on a loop, which would block it");
  core_->cancel(cancel_reason(cancel_kind::scope_ended));
  if (owned_by_scope_) return;
  for (const auto& worker : core_->workers()) worker->join();
  // No loop runs here, so there is no event.
  if (core_->take_error() != nullptr) detail::counters::count(core_->name(), "suppressed");
}

std::error_code pool::accept_now(detail::remote_ref job) {
  if (!job) return make_error_code(errc::empty_job);
  if (detail::crashing) return make_error_code(errc::pool_closed);
  core_->require_no_run();
  job->wants_result = false;
  const errc why = core_->enter(job, detail::pool_core::entry::now);
  return why == detail::pool_core::accepted ? std::error_code() : make_error_code(why);
}

task<> pool::close() {
  core_->require_no_run();
  return detail::close_pool(core_);
}
void pool::cancel(cancel_reason reason) {
  if (detail::crashing) return;
  core_->require_no_run();
  core_->cancel(std::move(reason));
}
bool pool::closed() const {
  core_->require_no_run();
  return core_->closed();
}

}  // namespace weir
