// SPDX-License-Identifier: MIT
#include <weir/detail/flow/adjusting_governor.hpp>

#include <algorithm>
#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/error.hpp>

#include "core/home.hpp"
#include "core/loop.hpp"

namespace weir::detail {

void require_governor_option(bool good, const char* kind, std::string_view name,
                             const char* problem) {
  if (!good) raise(errc::invalid_argument, text_of({kind, name}).append(": ").append(problem));
}

// ------------------------------------------------------------------ the alarm

alarm::alarm() noexcept {
  link_.owner = this;
  sleep_.belongs_to(link_);
}

void alarm::set(time_point at) noexcept {
  const std::uint64_t when = std::max(ticks(at), ticks(loop::here()->now()) + 1);
  if (sleep_.armed() && sleep_.when == when) return;
  cancel();
  sleep_.when = when;
  sleep_.arm();
}

void alarm::cancel() noexcept { (void)sleep_.withdraw(); }
void alarm::arm_completed(arm_link&) noexcept { rang(); }
cancel_result alarm::withdraw() noexcept { return cancel_result::done; }
void alarm::describe(dump_line& line) const { line.add("alarm"); }

// ------------------------------------------------------------------ waiting

adjusting_governor& adjusted_wait::of() const noexcept {
  return static_cast<adjusting_governor&>(*governor_);
}

bool adjusted_wait::try_now() {
  of().refresh();
  if (!acquire_wait::try_now()) return false;
  of().granted(weight_);
  return true;
}

void adjusted_wait::arm() noexcept {
  acquire_wait::arm();
  of().watch();
}

void adjusted_wait::describe(dump_line& line) const { of().describe(line); }

permit adjusted_wait::take() {
  if (fate_ != fate::granted) refuse();
  permit made = of().make_permit(weight_);
  fate_ = fate::waiting;
  return made;
}

adjusted_wait::~adjusted_wait() {
  if (fate_ == fate::granted) of().untaken(weight_);
}

// ------------------------------------------------------------------ the governor

adjusting_governor::adjusting_governor(const governor_options& options)
    : counting_governor(0, options) {
  adjusts_ = true;
  note_interest();
}

adjusting_governor::~adjusting_governor() = default;

void adjusting_governor::require_home() {
  if (!home_.is_here()) settle_home(true);
}
std::uint32_t adjusting_governor::current_home() const noexcept { return home_.serial(); }

pending<adjusted_wait> adjusting_governor::acquire_units(std::int64_t weight) {
  require_home();
  if (weight < 1) refuse_weight(weight);
  return pending<adjusted_wait>({this, weight});
}

std::optional<permit> adjusting_governor::try_acquire_units(std::int64_t weight) {
  require_home();
  if (weight < 1) refuse_weight(weight);
  refresh();
  if (closed_ || !waiters_.empty() || free_ < weight) return std::nullopt;
  permit made = make_permit(weight);
  free_ -= weight;
  granted(weight);
  return made;
}

permit adjusting_governor::plain_permit(std::int64_t weight) noexcept {
  return permit(static_cast<permit_source&>(*this), weight, home_.serial());
}

void adjusting_governor::give_back(std::int64_t weight) { counting_governor::give_back(weight); }

bool adjusting_governor::at_home() const noexcept {
  const std::uint32_t here = current_loop_serial();
  return here != 0 && here == home_.serial();
}

time_point adjusting_governor::time() const noexcept {
  return at_home() ? loop::here()->now() : latest_;
}

void adjusting_governor::refresh() noexcept {
  if (!at_home()) return;
  const time_point now = loop::here()->now();
  if (now < latest_) clock_changed(now);
  latest_ = now;
  adjust(now);
}

// Refreshes before each grant: a part of a partitioned governor is offered one unit at a time.
void adjusting_governor::grant_waiters() noexcept {
  refresh();
  while (!waiters_.empty() && first_weight() <= free_) {
    const std::int64_t weight = first_weight();
    grant_first();
    granted(weight);
    refresh();
  }
  watch();
}

void adjusting_governor::watch() noexcept {
  const time_point at = waiters_.empty() ? time_point::max() : next_change();
  if (at == time_point::max()) return alarm_.cancel();
  alarm_.set(at);
}

void adjusting_governor::set_limit(std::int64_t limit) noexcept {
  free_ += limit - capacity_;
  capacity_ = limit;
}

void adjusting_governor::set_free(std::int64_t units) noexcept {
  capacity_ += units - free_;
  free_ = units;
}

std::int64_t adjusting_governor::available() const noexcept {
  const_cast<adjusting_governor*>(this)->refresh();  // logically const: brings the limit up to date
  return counting_governor::available();
}

void adjusting_governor::close() {
  counting_governor::close();
  watch();
}

void adjusting_governor::describe(dump_line& line) const {
  line.add("acquire of governor").add_name(name());
  line.add(" (").add(static_cast<std::uint64_t>(active())).add(" of ");
  line.add(static_cast<std::uint64_t>(limit_now())).add(" out)");
}

}  // namespace weir::detail
