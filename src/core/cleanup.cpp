// SPDX-License-Identifier: MIT
#include "core/cleanup.hpp"

#include <memory>

#include <weir/detail/core/region_await.hpp>
#include <weir/future.hpp>
#include <weir/scope.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir::detail {

grace_region::grace_region(context& of, time_point end)
    : limited_region(region_kind::cleanup, "cleanup"), owner(of) {
  cancel_tree::make_shield(*this);
  if (end != time_point::max()) {
    set_deadline(end, cancel_kind::timeout);
    current->unarmed_deadlines = true;
  }
}

void grace_region::expired() noexcept {
  fired = true;
  cancel_tree::force(owner);
  const reason_ref why =
      make_reason({ends_as, "the grace for cleanup is over"}, id(), loop::here()->now());
  if (const fiber* f = cancel_tree::fiber_of(owner); f == &owner && loop::here()->is_root(*f))
    loop::here()->root_grace_over();
  context& ended = joining == nullptr ? static_cast<context&>(*this) : *joining;
  loop::here()->emit("cleanup_overdue", owner.name(), 0, owner.scope_id());
  cancel_tree::cancel(ended, why, true);
}

namespace {

/// Waits for the end of a service. A cancellation does not end the wait but forces the service.
class service_wait : public future_wait {
 public:
  using result = void;
  using future_wait::future_wait;
  void take() noexcept {}
  cancel_result withdraw() noexcept override {
    cancel_tree::cancel(static_cast<fiber&>(core()), cancel_tree::reason(*waiting_strand()->top),
                        true);
    return cancel_result::no;
  }
};

/// Cancels a service (the cleanup's shield does not protect it) or asks a polite one to end, and
/// waits for its end.
task<> stop_service(context& c, fiber& f, time_point grace_end) {
  const core_ref keep(&f);
  entry* place = std::exchange(f.registration, nullptr);
  polite_service* const polite = place->polite();
  cancel_tree::unlink_entry(c, *place);
  place->discard();
  if (polite != nullptr && !cancel_tree::forced(c)) {
    polite->ask_to_end();
  } else {
    const reason_ref why = make_reason(cancel_kind::scope_ended, c.scope_id(), loop::here()->now());
    cancel_tree::cancel(f, why, cancel_tree::forced(c));
  }
  grace_region grace(c, grace_end);
  grace.joining = &f;
  if (polite != nullptr) grace.ends_as = cancel_kind::scope_ended;
  cancel_tree::enter(*current, grace);
  co_await quiet_wait_op<service_wait>(core_ref(&f));
  cancel_tree::leave(*current, grace);
}

void keep_error(const context& c, outcome<void>& how, std::vector<std::exception_ptr>& errors) {
  if (how.is_error()) {
    errors.push_back(how.error());
    loop::here()->emit("cleanup_failed", c.name(), 0, c.scope_id(), how.error());
  } else if (how.is_cancelled()) {
    errors.push_back(std::make_exception_ptr(timeout_error(
        "a defer of '" + std::string(c.name()) + "' was ended, because its grace was over")));
  }
}

task<> run_defer(context& c, entry& e, const outcome_base& how, time_point grace_end,
                 std::vector<std::exception_ptr>& errors) {
  cancel_tree::unlink_entry(c, e);
  const std::unique_ptr<entry> owned(&e);
  outcome<void> result;
  {
    grace_region grace(c, grace_end);
    const outcome_view view(how);
    auto call = [&] { return owned->run(view); };
    co_await inside(grace, result, call);
    if (cancel_tree::entries(grace) != nullptr)
      co_await quietly(pop_entries(grace, result, errors));
    cancel_tree::leave(*current, grace);
  }
  keep_error(c, result, errors);
}

}  // namespace

task<> pop_entries(context& c, const outcome_base& how, std::vector<std::exception_ptr>& errors) {
  const duration grace = cancel_tree::grace_around(c);
  const time_point grace_end =
      grace == duration::max() ? time_point::max() : saturating_add(loop::here()->now(), grace);
  while (entry* e = cancel_tree::entries(c)) {
    switch (e->what) {
      case entry::kind::defer:
        co_await quietly(run_defer(c, *e, how, grace_end, errors));
        break;
      case entry::kind::background:
        co_await quietly(stop_service(c, *e->service(), grace_end));
        break;
      case entry::kind::stop:
        cancel_tree::unlink_entry(c, *e);
        delete e;
        break;
      case entry::kind::bottom:
        co_return;
    }
  }
}

}  // namespace weir::detail
