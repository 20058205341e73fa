// SPDX-License-Identifier: MIT
// An engine with objects, a key that changes and compactions, on a disk that loses power at random
// moments, beside a ledger that knows what was acknowledged. Used by a crash test, and by the probe
// that the planted defects must not pass.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "durable/crash_model.hpp"
#include "durable/snapshot.hpp"

namespace journal_aid {

/// Appends the number at the beginning of the text to what the key has seen.
inline weir::task<int> sees(std::string text) {
  auto seen = weir::stored<std::vector<int>>("seen");
  const auto old = co_await seen.get();
  std::vector<int> now = old.value_or(std::vector<int>{});
  now.push_back(std::stoi(text));
  seen.set(now);
  co_return static_cast<int>(now.size());
}

inline weir::task<std::vector<int>> seen_so_far() {
  const auto seen = co_await weir::stored<std::vector<int>>("seen").get();
  co_return seen.value_or(std::vector<int>{});
}

/// Each number is sent to one key, once. Whatever happens: a number whose start was acknowledged is
/// seen exactly once, and one whose turn was answered is where the answer says.
class object_power_model {
 public:
  explicit object_power_model(std::uint64_t seed) : random_(seed), rig_(seed) {
    rig_.disk.sync_directory("/");
  }

  /// Throws `violation`.
  void live_and_crash() {
    ++life_;
    powered_disk disk(rig_.disk);
    disk.power.fail_after(30 + random_.below(800));
    rig_.disk.set({.torn = 0.5, .reorder = 0.3});
    problem_.clear();
    try {
      const weir::wall_time born =
          std::chrono::sys_days(std::chrono::year(2030) / 1 / 1) + std::chrono::hours(life_);
      weir::sim::run({.seed = life_, .start_time = born}, live(disk));
    } catch (const std::exception& e) {
      if (!disk.power.off() && problem_.empty()) problem_ = e.what();
    }
    rig_.disk.crash();
    for (const std::string& name : rig_.disk.list("j"))
      if (const auto number = weir::detail::snapshot_number(name)) snapshots_.insert(*number);
    if (!problem_.empty()) throw violation(problem_);
  }

  std::size_t acknowledged() const noexcept { return acknowledged_.size(); }
  std::size_t compactions() const noexcept { return snapshots_.size(); }

 private:
  struct answered {
    int number;
    int at;
  };

  static std::string key_of(int number) { return "k" + std::to_string(number % 3); }

  weir::task<> live(powered_disk& disk) {
    const std::array<std::string, 3> all{std::string(32, 'a'), std::string(32, 'b'),
                                         std::string(32, 'c')};
    const std::array<std::string_view, 3> old{all[0], all[1], all[2]};
    weir::durable::engine_options options;
    options.path = "j";
    options.segment_bytes = small_segment;
    options.disk = &disk;
    options.retention = std::chrono::seconds(1);
    options.report_blocked = false;
    if (life_ > 2) {  // it begins without a key
      options.encryption_key = all[life_ / 2 % all.size()];
      options.old_keys = old;
    }
    auto body = [&](weir::durable::engine& e) -> weir::task<> {
      e.add_object("log", {{"see", sees}, {"seen", weir::durable::shared(seen_so_far)}});
      co_await e.open();
      co_await weir::sleep(std::chrono::seconds(1));  // what was under way goes on
      co_await check(e);
      if (problem_.empty()) co_await work(e);
    };
    co_await weir::durable::with_engine(options, body);
  }

  weir::task<> check(weir::durable::engine& e) {
    std::map<std::string, std::vector<int>> found;
    std::multiset<int> all;
    for (int k = 0; k < 3; ++k) {
      const std::string key = key_of(k);
      auto run = co_await e.start<std::vector<int>>("log/seen", {.key = key});
      found[key] = co_await run.result();
      all.insert(found[key].begin(), found[key].end());
    }
    for (const int n : all)
      if (all.count(n) > 1) problem_ = std::to_string(n) + " was seen twice";
    for (const int n : acknowledged_)
      if (!all.contains(n)) problem_ = std::to_string(n) + " was acknowledged and is lost";
    for (const answered& a : answered_) {
      const std::vector<int>& seen = found[key_of(a.number)];
      const auto at = static_cast<std::size_t>(a.at) - 1;
      if (at >= seen.size() || seen[at] != a.number)
        problem_ = "the turn of " + std::to_string(a.number) + " was answered and has no effect";
    }
  }

  weir::task<> work(weir::durable::engine& e) {
    for (int i = 0; i < 40; ++i) {
      const int number = ++last_;
      const std::string id = "t" + std::to_string(number);
      const std::string key = key_of(number);
      const std::string text = std::to_string(number) + std::string(4000, ' ');
      auto run = co_await e.start<int>("log/see", {.id = id, .key = key}, text);
      acknowledged_.push_back(number);
      if (number % 5 == 0) continue;  // the next life may have to end it
      answered_.push_back({number, co_await run.result()});
      if (number % 10 == 1) co_await weir::sleep(std::chrono::seconds(2));  // and it is forgotten
    }
  }

  disk_support::generator random_;
  disk_support::rig rig_;
  std::uint64_t life_ = 0;
  int last_ = 0;
  std::vector<int> acknowledged_;
  std::vector<answered> answered_;
  std::set<std::uint64_t> snapshots_;
  std::string problem_;
};

}  // namespace journal_aid
