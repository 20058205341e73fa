// SPDX-License-Identifier: MIT
#include <weir/governor/adaptive.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace weir {

namespace {

constexpr std::int64_t window_min = 10;
constexpr std::int64_t window_limits = 2;  // a window is this many times the limit
constexpr double long_window = 32;
constexpr double growth_max = 1.5;
constexpr double gradient_min = 0.5;

}  // namespace

namespace detail {

/// A permit in use, with the time it was granted.
struct measured_permit final : permit_source {
  explicit measured_permit(adaptive_governor& g) noexcept : of(g) {}
  void give_back(std::int64_t) override { of.released(*this); }
  std::uint32_t current_home() const noexcept override { return of.current_home(); }

  adaptive_governor& of;
  time_point since{};
  measured_permit* next = nullptr;
};

}  // namespace detail

adaptive_governor::adaptive_governor(const adaptive_options& options)
    : adjusting_governor({.name = options.name, .max_waiting = options.max_waiting}),
      min_(options.min),
      max_(options.max),
      limit_(static_cast<double>(options.initial)) {
  const auto require = [&](bool good, const char* problem) {
    detail::require_governor_option(good, "adaptive_governor", name(), problem);
  };
  require(min_ >= 1, "min is below 1, so that nothing would ever run; give 1 or more");
  require(max_ >= min_, "max is below min; give as much or more");
  require(max_ <= 0xffffffff, "max is above 4294967295; give less");
  require(options.initial >= min_ && options.initial <= max_,
          "initial is not between min and max; give a limit to begin with");
  set_limit(options.initial);
}

adaptive_governor::~adaptive_governor() {
  while (unused_ != nullptr) delete std::exchange(unused_, unused_->next);
}

void adaptive_governor::granted(std::int64_t) noexcept {
  most_out_ = std::max(most_out_, active());
}

permit adaptive_governor::make_permit(std::int64_t weight) {
  detail::measured_permit* record = unused_;
  if (record == nullptr) {
    record = new detail::measured_permit(*this);
  } else {
    unused_ = record->next;
  }
  record->since = time();
  return permit(*record, weight, current_home());
}

void adaptive_governor::released(detail::measured_permit& record) {
  record.next = std::exchange(unused_, &record);
  if (at_home()) measured(time() - record.since);
  give_back(1);
}

// Negative: the permit was granted on the clock of a loop that has ended.
void adaptive_governor::measured(duration held) noexcept {
  if (held < duration::zero()) return;
  sum_ += static_cast<double>(held.count());
  if (++samples_ >= std::max(window_min, window_limits * limit())) end_window();
}

void adaptive_governor::end_window() noexcept {
  const double short_rtt = sum_ / static_cast<double>(samples_);
  if (long_rtt_ < 0) long_rtt_ = short_rtt;
  if (2 * most_out_ >= limit()) {
    const double gradient =
        short_rtt > long_rtt_ ? std::max(long_rtt_ / short_rtt, gradient_min) : 1;
    double next = limit_ * gradient;
    if (gradient == 1) next = std::min(limit_ + std::sqrt(limit_), limit_ * growth_max);
    limit_ = std::clamp(next, static_cast<double>(min_), static_cast<double>(max_));
    set_limit(static_cast<std::int64_t>(limit_));
  }
  long_rtt_ += (short_rtt - long_rtt_) / long_window;
  sum_ = 0;
  samples_ = 0;
  most_out_ = active() - 1;  // the permit that ended the window is being released
}

}  // namespace weir
