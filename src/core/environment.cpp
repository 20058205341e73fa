// SPDX-License-Identifier: MIT
#include "core/environment.hpp"

#include <charconv>
#include <cstdio>
#include <random>

#include "core/dump_tree.hpp"
#include "core/loop.hpp"
#include "core/served_loop.hpp"

namespace weir::detail {

namespace {

std::uint64_t rotate_left(std::uint64_t x, int k) noexcept { return (x << k) | (x >> (64 - k)); }

/// splitmix64: neighbouring seeds give unrelated states.
std::uint64_t spread(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace

random_numbers::random_numbers(std::uint64_t seed) noexcept {
  for (std::uint64_t& part : s_) part = spread(seed);
}

std::uint64_t random_numbers::next() noexcept {
  const std::uint64_t result = rotate_left(s_[1] * 5, 7) * 9;
  const std::uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = rotate_left(s_[3], 45);
  return result;
}

std::uint64_t random_numbers::below(std::uint64_t n) noexcept {
  const std::uint64_t unfair = (0 - n) % n;  // 2^64 mod n: values below it would be too frequent
  for (;;) {
    const std::uint64_t drawn = next();
    if (drawn >= unfair) return drawn % n;
  }
}

void environment::start(const std::shared_ptr<served_loop>& made) { made->start_thread(); }

std::string environment::dump(loop& here) { return dump_of(here); }

void environment::add_watch(wall_watch& w) noexcept {
  w.next_ = watches_;
  watches_ = &w;
}

void environment::remove_watch(wall_watch& w) noexcept {
  wall_watch** at = &watches_;
  while (*at != nullptr && *at != &w) at = &(*at)->next_;
  if (*at != nullptr) *at = w.next_;
}

void environment::notify_watches() noexcept {
  for (wall_watch* w = watches_; w != nullptr; w = w->next_) w->wall_clock_set();
}

time_point real_environment::now() {
  return std::chrono::time_point_cast<duration>(std::chrono::steady_clock::now());
}

wall_time real_environment::wall_now() {
  return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
}

std::uint64_t real_environment::random() {
  if (!numbers_) {
    std::random_device entropy;
    numbers_.emplace(static_cast<std::uint64_t>(entropy()) << 32 | entropy());
  }
  return numbers_->next();
}

std::optional<double> pressure_in(std::string_view text) noexcept {
  constexpr std::string_view before = "some avg10=";
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  double percent = 0;
  text.remove_prefix(at + before.size());
  const auto read = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (read.ec != std::errc()) return std::nullopt;
  return percent;
}

// The kernel answers from memory: a read takes microseconds and never blocks.
std::optional<double> real_environment::cpu_pressure() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/pressure/cpu", "re"),
                                                             &std::fclose);
  if (file == nullptr) return std::nullopt;
  char text[256];
  return pressure_in({text, std::fread(text, 1, sizeof text, file.get())});
}

void real_environment::park(loop& here, std::optional<time_point> until) {
  if (here.spin_for_messages()) return;
  std::int64_t limit = -1;
  if (until) {
    limit = (*until - now()).count();
    if (limit <= 0) return;
  }
  here.sleep(limit);
}

}  // namespace weir::detail
