// SPDX-License-Identifier: MIT
#include "core/cleanup.hpp"

#include <memory>

#include <weir/detail/region_await.hpp>
#include <weir/future.hpp>
#include <weir/scope.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"

namespace weir::detail {

grace_region::grace_region(context& of, time_point end)
    : limited_region(region_kind::cleanup, "cleanup"), owner(of) {
  region::make_shield(*this);
  if (end != time_point::max()) {
    set_deadline(end, cancel_kind::timeout);
    current->unarmed_deadlines = true;
  }
}

void grace_region::expired() noexcept {
  fired = true;
  region::force(owner);
  cancel_reason why(ends_as, "the grace for cleanup is over");
  why.source = id();
  why.when = loop::here()->now();
  if (const fiber* f = region::fiber_of(owner); f == &owner && loop::here()->is_root(*f))
    loop::here()->root_grace_over();
  context& ended = joining == nullptr ? static_cast<context&>(*this) : *joining;
  loop::here()->emit("cleanup_overdue", owner.name(), 0, owner.scope_id());
  region::cancel(ended, make_reason(std::move(why)), true);
}

namespace {

/// Waits for the end of a service. A cancellation does not end the wait but forces the service.
class service_wait : public future_wait {
 public:
  using result = void;
  using future_wait::future_wait;
  void take() noexcept {}
  cancel_result withdraw() noexcept override {
    region::cancel(static_cast<fiber&>(core()), region::reason(*waiting_strand()->top), true);
    return cancel_result::no;
  }
};

/// Cancels a service (the cleanup's shield does not protect it) or asks a polite one to end, and
/// waits for its end.
task<> stop_service(context& c, fiber& f, time_point grace_end) {
  const core_ref keep(&f);
  entry* place = std::exchange(f.registration, nullptr);
  polite_service* const polite = place->polite();
  region::unlink_entry(c, *place);
  place->discard();
  if (polite != nullptr && !region::forced(c)) {
    polite->ask_to_end();
  } else {
    cancel_reason why(cancel_kind::scope_ended);
    why.source = c.scope_id();
    why.when = loop::here()->now();
    region::cancel(f, make_reason(std::move(why)), region::forced(c));
  }
  grace_region grace(c, grace_end);
  grace.joining = &f;
  if (polite != nullptr) grace.ends_as = cancel_kind::scope_ended;
  region::enter(*current, grace);
  co_await quiet_wait_op<service_wait>(core_ref(&f));
  region::leave(*current, grace);
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
  region::unlink_entry(c, e);
  const std::unique_ptr<entry> owned(&e);
  outcome<void> result;
  {
    grace_region grace(c, grace_end);
    const outcome_view view(how);
    auto call = [&] { return owned->run(view); };
    co_await inside(grace, result, call);
    if (region::entries(grace) != nullptr) co_await quietly(pop_entries(grace, result, errors));
    region::leave(*current, grace);
  }
  keep_error(c, result, errors);
}

}  // namespace

task<> pop_entries(context& c, const outcome_base& how, std::vector<std::exception_ptr>& errors) {
  const duration grace = region::grace_around(c);
  const time_point grace_end =
      grace == duration::max() ? time_point::max() : saturating_add(loop::here()->now(), grace);
  while (entry* e = region::entries(c)) {
    switch (e->kind) {
      case entry::sort::defer:
        co_await quietly(run_defer(c, *e, how, grace_end, errors));
        break;
      case entry::sort::background:
        co_await quietly(stop_service(c, *e->service(), grace_end));
        break;
      case entry::sort::stop:
        region::unlink_entry(c, *e);
        delete e;
        break;
      case entry::sort::bottom:
        co_return;
    }
  }
}

}  // namespace weir::detail
