// SPDX-License-Identifier: MIT
// Compactions, and values in files of their own, on a disk without space.
#include <algorithm>
#include <cerrno>

#include "durable/support/stage.hpp"
#include "support/disk_support.hpp"
#include "support/forwarding_disk.hpp"

using namespace durable_test;

namespace {

const std::string wide_value(30'000, 'v');

task<> stores_wide(int) {
  weir::stored<std::string>("v").set(wide_value);
  co_return;
}

task<int> reads_wide() {
  const auto value = co_await weir::stored<std::string>("v").get();
  co_return value ? static_cast<int>(value->size()) : -1;
}

task<> swallows(std::string) { co_return; }

void add_wide(durable::engine& e) {
  e.add_object("o", {{"set", stores_wide}, {"get", durable::shared(reads_wide)}});
  e.add("fill", swallows);
}

task<> fill_log(durable::engine& e) {
  for (int i = 0; i < 100; ++i) {
    auto run = co_await e.start("fill", {}, std::string(2000, 's'));
    co_await run.result();
  }
}

long compaction_events(std::string_view name) {
  const auto events = weir::recent_events().events;
  return std::count_if(events.begin(), events.end(), [&](const auto& e) { return e.name == name; });
}

/// The next `refusals` renames of blobs have no space.
class full_directory final : public disk_support::forwarding_disk {
 public:
  using forwarding_disk::forwarding_disk;
  int refusals = 0;
  void rename(const std::string& from, const std::string& to) override {
    if (from.find("/blob/") != std::string::npos && refusals > 0) {
      --refusals;
      throw std::system_error(ENOSPC, std::generic_category(), "rename");
    }
    forwarding_disk::rename(from, to);
  }
};

}  // namespace

TEST(durable_compaction_room, one_without_space_changes_nothing_and_is_tried_again) {
  const stage on;
  sim::world w({.seed = 1, .start_time = day0});
  durable::engine_options options = on_disk(w);
  options.retention = 10min;
  auto use = [&](durable::engine& e) -> task<> {
    {
      auto run = co_await e.start("o/set", {.key = "k"}, 1);
      co_await run.result();
    }
    co_await fill_log(e);
    w.disk().set({.space = 1});
    co_await weir::sleep(1h);
    EXPECT_GE(compaction_events("compaction_failed"), 1);
    EXPECT_EQ(compaction_events("journal_compacted"), 0);
    w.disk().set({});
    co_await weir::sleep(2s);
    co_await fill_log(e);
    co_await weir::sleep(1h);
    EXPECT_GE(compaction_events("journal_compacted"), 1);
  };
  w.run(with_open_engine(options, add_wide, use));
  w.disk().crash();
  w.run(with_open_engine(options, add_wide, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<int>("o/get", {.key = "k"});
    EXPECT_EQ(co_await run.result(), 30'000);
  }));
}

TEST(durable_compaction_room, a_file_without_space_for_its_name_waits_for_room) {
  const stage on;
  full_directory disk;
  durable::engine_options options = options_for(on);
  options.disk = &disk;
  auto use = [&](durable::engine& e) -> task<> {
    disk.refusals = 2;
    auto run = co_await e.start("fill", {.id = "r"}, wide_value);
    co_await run.result();
    EXPECT_EQ(disk.refusals, 0);
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, add_wide, use));
}
