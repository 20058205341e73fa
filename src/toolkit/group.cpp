// SPDX-License-Identifier: MIT
#include <weir/group.hpp>

#include <string>
#include <utility>

#include <weir/detail/core/dump_line.hpp>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

namespace {

std::string of_group(const char* what, std::string_view name) {
  return std::string(what) + " of group '" + std::string(name) + "'";
}

scope_options as_scope(const group_options& o) {
  scope_options options;
  options.name = o.name.empty() ? weir::name("group") : o.name;
  return options;
}

}  // namespace

group_setup::group_setup(const group_options& o, std::source_location where)
    : scope(as_scope(o), where), collect(o.collect) {
  if (o.collect < 0)
    raise(errc::invalid_argument,
          "group '" + std::string(scope.name.view()) + "': collect is negative; give 0 or more");
}

group_region::group_region(group_setup&& setup, region_kind kind)
    : guided_scope(std::move(setup.scope), kind), collect(setup.collect) {}

void group_region::child_failed(fiber& f) {
  const std::string_view who = f.name == nullptr ? name() : f.name;
  if (static_cast<std::int64_t>(collected.size()) < collect)
    collected.push_back(f.result().error());
  const std::exception_ptr error = cancel_tree::cause_of(*this, f.result().error(), who);
  cancel_tree::keep_error(*this, error, who);
  if (first != nullptr) return;
  first = error;
  cancel_tree::cancel_children(*this,
                               cancel_tree::signed_by(*this, cancel_tree::blame(error, who)));
}

void body_ended(group_region& g, outcome_base& out) {
  g.waiting = g.waiting || out.is_value();
  if (out.is_error() && g.first != nullptr) {
    failures& kept = cancel_tree::problems(g);
    for (std::exception_ptr& unseen : kept.raised) {
      loop::here()->emit("suppressed", g.name(), 0, g.id(), unseen);
      kept.suppressed.push_back(std::move(unseen));
    }
    kept.raised.clear();
  }
  body_ended(static_cast<scope&>(g), out);
}

// ------------------------------------------------------------------ waiting

bool group_wait::try_now() noexcept {
  if (!is_home()) return true;
  if (!begun_) {
    refused_ = group_->waited;
    if (refused_) return true;
    begun_ = group_->waited = group_->waiting = true;
  }
  return join_wait::try_now();
}

void group_wait::describe(dump_line& line) const {
  line.add("jobs of group").add_name(group_->name());
}

void group_wait::take() {
  group_->require_home("wait");
  if (refused_)
    raise(errc::already_waited,
          of_group("wait", group_->name()) + " was begun before; a group is waited for once");
  if (group_->first == nullptr) return;
  const auto gone = std::exchange(cancel_tree::problems(*group_).raised, {});
  std::rethrow_exception(group_->first);
}

}  // namespace detail

// ------------------------------------------------------------------ the interface of the body

bool group::takes_jobs() {
  detail::group_region& g = *region_;
  g.require_home("go");
  if (g.waiting)
    detail::raise(errc::group_waiting, detail::of_group("go", g.name()) +
                                           " after wait() was begun; start jobs before it");
  if (g.first == nullptr && !g.cancel_requested()) return true;
  detail::loop::here()->emit("job_dropped", g.name(), ++g.dropped, g.id());
  return false;
}

void group::start(detail::fiber* job, const spawn_options& options, std::source_location site) {
  const auto dropped =
      detail::core_ref::adopt(region_->adopt(job, options, site, scope::launch::ordinary));
}

detail::pending<detail::group_wait> group::wait() {
  region_->require_home("wait");
  detail::require_fiber("wait");
  if (detail::cancel_tree::runs_in_child_of(*region_))
    detail::raise(errc::would_deadlock,
                  detail::of_group("wait", name()) +
                      " called from one of its own jobs, which would wait for itself");
  return detail::pending<detail::group_wait>(region_);
}

std::vector<std::exception_ptr> group::errors() const { return region_->collected; }
std::string_view group::name() const noexcept { return region_->name(); }

}  // namespace weir
