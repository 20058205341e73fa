// SPDX-License-Identifier: MIT
#include <weir/governor/partitioned.hpp>

#include <string>

#include <weir/error.hpp>

#include "core/home.hpp"

namespace weir {

namespace {

constexpr std::int64_t capacity_max = 0xffffffff;
constexpr std::int64_t weight_max = 0x7fffffff;  // so that weight * capacity fits in 64 bits
constexpr const char* across_loops = "use a governor for each loop, or shared_governors";

}  // namespace

// ------------------------------------------------------------------ parts

governor_part::governor_part(partitioned_governor& whole, const governor_share& share,
                             weir::name full_name, std::int64_t max_waiting)
    : adjusting_governor({.name = full_name, .max_waiting = max_waiting}),
      whole_(whole),
      weight_(share.weight),
      short_name_(share.name) {}

std::int64_t governor_part::share() const noexcept {
  return whole_.capacity_ * weight_ / whole_.total_weight_;
}

void governor_part::require_home() {
  if (!whole_.home_.is_here()) whole_.home_.settle(whole_.self(), across_loops, true);
  adjusting_governor::require_home();
}

void governor_part::adjust(time_point) noexcept { set_free(whole_.offered_to(*this)); }
void governor_part::granted(std::int64_t weight) noexcept { whole_.out_ += weight; }

void governor_part::give_back(std::int64_t weight) {
  whole_.out_ -= weight;
  adjusting_governor::give_back(weight);
  whole_.grant();
}

// ------------------------------------------------------------------ partitioned_governor

partitioned_governor::partitioned_governor(std::int64_t capacity,
                                           std::initializer_list<governor_share> shares,
                                           const governor_options& options)
    : capacity_(capacity), name_(options.name) {
  require_capacity(capacity);
  detail::require_governor_option(shares.size() > 0, "partitioned_governor", name(),
                                  "it has no parts; give names and weights");
  for (const governor_share& share : shares) add(share, options.max_waiting);
}

partitioned_governor::~partitioned_governor() = default;

void partitioned_governor::add(const governor_share& share, std::int64_t max_waiting) {
  const std::string_view called = share.name.view();
  const auto require = [&](bool good, const char* problem) {
    if (good) return;
    std::string text("part '");
    text.append(called).append("' ").append(problem);
    detail::require_governor_option(false, "partitioned_governor", name(), text.c_str());
  };
  require(!called.empty(), "has no name; give it one");
  require(find(called) == nullptr, "is given twice; give each part once");
  require(share.weight >= 1 && share.weight <= weight_max,
          "has a weight that is not in 1..2147483647");
  std::string full_name(name());
  if (!full_name.empty()) full_name.append("/");
  full_name.append(called);
  parts_.emplace_back(new governor_part(*this, share, full_name, max_waiting));
  total_weight_ += share.weight;
}

void partitioned_governor::require_capacity(std::int64_t capacity) const {
  detail::require_governor_option(capacity >= 0 && capacity <= capacity_max, "partitioned_governor",
                                  name(), "the capacity is not in 0..4294967295");
}

governor_part* partitioned_governor::find(std::string_view name) const noexcept {
  for (const auto& part : parts_)
    if (part->short_name_.view() == name) return part.get();
  return nullptr;
}

governor_part& partitioned_governor::part(std::string_view name) {
  if (governor_part* found = find(name)) return *found;
  std::string text("there is no part '");
  text.append(name).append("'; it has");
  for (const auto& known : parts_) text.append(" '").append(known->short_name_.view()).append("'");
  detail::raise(errc::invalid_argument, detail::text_of(self()).append(": ").append(text));
}

// The waiting part with the fewest units out in proportion to its weight: a part below its share
// comes before a part that is not.
governor_part* partitioned_governor::next_part() const noexcept {
  governor_part* best = nullptr;
  for (const auto& part : parts_) {
    if (!part->anybody_waits()) continue;
    if (best == nullptr || part->active() * best->weight_ < best->active() * part->weight_)
      best = part.get();
  }
  return best;
}

// All free units if no request waits; otherwise one, to the part whose turn it is.
std::int64_t partitioned_governor::offered_to(const governor_part& part) const noexcept {
  const std::int64_t free = available();
  if (free == 0) return 0;
  const governor_part* next = next_part();
  if (next == nullptr) return free;
  return next == &part ? 1 : 0;
}

void partitioned_governor::grant() noexcept {
  while (available() > 0) {
    governor_part* next = next_part();
    if (next == nullptr) return;
    const std::int64_t before = out_;
    next->grant_waiters();
    if (out_ == before) return;  // not on its home loop: its waiters are granted there
  }
}

void partitioned_governor::resize(std::int64_t capacity) {
  if (!home_.is_here()) home_.settle(self(), across_loops, false);
  require_capacity(capacity);
  capacity_ = capacity;
  grant();
}

void partitioned_governor::close() {
  if (!home_.is_here()) home_.settle(self(), across_loops, false);
  for (const auto& part : parts_) part->close();
}

std::int64_t partitioned_governor::waiting() const noexcept {
  std::int64_t all = 0;
  for (const auto& part : parts_) all += part->waiting();
  return all;
}

}  // namespace weir
