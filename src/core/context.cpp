// SPDX-License-Identifier: MIT
#include <weir/context.hpp>

#include <weir/detail/core/run_rules.hpp>
#include <weir/scope.hpp>

#include "core/cancel_tree.hpp"
#include "core/error.hpp"
#include "core/loop.hpp"

namespace weir {

namespace {

/// Holds the std::stop_source of a context; popping it has no effect.
struct stop_entry final : detail::entry {
  stop_entry() : entry(kind::stop) {}
  task<> run(const outcome_view&) override {
    detail::loop::here()->request_stop_later(source);
    return task<>(nullptr);
  }
  std::stop_source source;
};

[[noreturn]] void raise_wrong_loop(const char* what, const context& c) {
  const scope& s = detail::cancel_tree::scope_of(c);
  detail::require_same_run(detail::cancel_tree::loop_of(s).serial(),
                           "scope '" + std::string(s.name()) + "'");
  detail::raise(errc::wrong_loop,
                std::string(what) + " on scope '" + std::string(s.name()) + "' of loop '" +
                    detail::cancel_tree::loop_of(s).own_door().name() + "' called on " +
                    detail::running_loop_text() + "; use a cancel_source, or post to its loop");
}

}  // namespace

void context::require_home(const char* what) const {
  if (&detail::cancel_tree::loop_of(detail::cancel_tree::scope_of(*this)) != detail::loop::here())
    raise_wrong_loop(what, *this);
}

void context::own(detail::entry* adopted) {
  adopted->below = entries_;
  if (entries_ != nullptr) entries_->above = adopted;
  entries_ = adopted;
}

std::optional<time_point> context::deadline() const noexcept {
  std::optional<time_point> earliest;
  for (const context* c = this; c != nullptr; c = c->parent_) {
    if (c->kind_ == detail::region_kind::timeout || c->kind_ == detail::region_kind::shield ||
        c->kind_ == detail::region_kind::cleanup) {
      const auto& limited =
          static_cast<const detail::limited_region&>(static_cast<const scope&>(*c));
      if (limited.has_deadline && (!earliest || limited.at < *earliest)) earliest = limited.at;
    }
    if (c->shield_) break;
  }
  return earliest;
}

weir::scope_id context::scope_id() const noexcept {
  return detail::cancel_tree::scope_of(*this).id();
}

std::string_view context::name() const noexcept {
  if (kind_ == detail::region_kind::scope) return static_cast<const scope*>(this)->name();
  const detail::fiber* f = detail::cancel_tree::fiber_of(*this);
  if (f == nullptr) return {};
  if (f->name != nullptr) return f->name;
  const auto root = const_cast<detail::fiber*>(f)->result().frame();
  return root ? std::string_view(detail::frame_of(root).function.function_name())
              : std::string_view();
}

std::stop_token context::stop_token() {
  require_home("stop_token");
  for (detail::entry* e = entries_; e != nullptr; e = e->below)
    if (e->what == detail::entry::kind::stop)
      return static_cast<stop_entry*>(e)->source.get_token();
  auto* made = new stop_entry;
  own(made);
  if (reason_) detail::loop::here()->request_stop_later(made->source);
  return made->source.get_token();
}

context& this_context() {
  detail::require_fiber("this_context");
  context* c = detail::current->top;
  while (detail::cancel_tree::kind(*c) == detail::region_kind::stream)
    c = detail::cancel_tree::parent(*c);
  return *c;
}

const scope& this_scope() {
  detail::require_fiber("this_scope");
  return detail::cancel_tree::scope_of(*detail::current->top);
}

}  // namespace weir
