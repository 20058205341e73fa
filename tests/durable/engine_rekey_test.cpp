// SPDX-License-Identifier: MIT
// Engines whose key has changed: a compaction leaves nothing that needs the old one, and nothing
// readable of times without a key. The states of objects that it records are written in slices.
#include <fstream>
#include <iterator>

#include "durable/compact_journal.hpp"
#include "durable/snapshot.hpp"
#include "durable/support/stage.hpp"
#include "support/forwarding_disk.hpp"

using namespace durable_test;

namespace {

const std::string rekey_old(32, 'o');
const std::string rekey_new(32, 'n');
const std::string rekey_marker = "SECRET-0815";

struct rekey_keys {
  std::string_view present;
  std::vector<std::string_view> old{};
};

/// Before the present of the machine, whose clock the function for closed journals uses.
constexpr weir::duration rekey_time = -24h * 365 * 10;

durable::engine_options rekey_options(const stage& on, const rekey_keys& keys) {
  durable::engine_options options = options_for(on);
  options.encryption_key = keys.present;
  options.old_keys = keys.old;
  return options;
}

task<std::string> stores(std::string text) {
  auto value = weir::stored<std::string>("value");
  value.set(text);
  const std::string kept = co_await weir::step("keep", [&] { return text; });
  (void)co_await weir::send("rekey_asks", text + std::string(70'000, 'L'), {.id = "sent"});
  co_return kept;
}

task<std::string> stored_now() {
  const auto value = co_await weir::stored<std::string>("value").get();
  co_return value.value_or("none");
}

task<std::string> rekey_asks(std::string text) {
  auto answer = weir::awakeable<std::string>("answer");
  co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
  const std::string said = co_await answer.wait();
  co_return std::to_string(text.size()) + said;
}

void add_rekeyed(durable::engine& e) {
  e.add_object("box", {{"put", stores}, {"get", durable::shared(stored_now)}});
  e.add("rekey_asks", rekey_asks);
}

void rekey_session(const stage& on, const rekey_keys& keys, user use, weir::duration later = 0ns) {
  sim::run({.seed = 1, .start_time = day0 + rekey_time + later},
           with_open_engine(rekey_options(on, keys), add_rekeyed, std::move(use)));
}

task<> fill_box(durable::engine& e) {
  auto run = co_await e.start<std::string>("box/put", {.id = "p", .key = "k"}, rekey_marker);
  EXPECT_EQ(co_await run.result(), rekey_marker);
  (void)co_await last_noted("id ");
}

task<> look_into_box(durable::engine& e) {
  auto state = co_await e.start<std::string>("box/get", {.key = "k"});
  EXPECT_EQ(co_await state.result(), rekey_marker);
  auto ended = co_await e.start<std::string>("box/put", {.id = "p", .key = "k"}, "ignored");
  EXPECT_EQ(co_await ended.result(), rekey_marker);
  EXPECT_TRUE(co_await e.resolve(noted("id ").back(), std::string("!")));
  auto sent = co_await e.start<std::string>("rekey_asks", {.id = "sent"}, "ignored");
  EXPECT_EQ(co_await sent.result(), std::to_string(70'000 + rekey_marker.size()) + "!");
}

void compact_closed(const stage& on, const rekey_keys& keys) {
  whole_life([&] { (void)weir::detail::compact_journal(rekey_options(on, keys)); });
}

errc rekey_opening(const stage& on, const rekey_keys& keys) {
  std::error_code code;
  const durable::engine_options options = rekey_options(on, keys);
  auto body = [&](durable::engine& e) -> task<> {
    add_rekeyed(e);
    code = co_await code_after([&] { return e.open(); });
  };
  auto app = [&]() -> task<> { co_await durable::with_engine(options, body); };
  sim::run({.seed = 1, .start_time = day0 + rekey_time + 1h}, app());
  return static_cast<errc>(code.value());
}

std::string bytes_of_journal(const stage& on) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(on.journal())) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

}  // namespace

TEST(durable_rekey, after_a_compaction_with_a_new_key_that_key_alone_opens_everything) {
  const stage on;
  rekey_session(on, {rekey_old}, fill_box);
  EXPECT_EQ(rekey_opening(on, {rekey_new}), errc::wrong_key);
  compact_closed(on, {rekey_new, {rekey_old}});
  EXPECT_EQ(rekey_opening(on, {rekey_old}), errc::wrong_key);
  rekey_session(on, {rekey_new}, look_into_box, 1h);
  EXPECT_FALSE(test_support::contains(bytes_of_journal(on), rekey_marker));
}

TEST(durable_rekey, after_a_compaction_nothing_is_readable_of_a_journal_that_had_no_key) {
  const stage on;
  rekey_session(on, {}, fill_box);
  EXPECT_TRUE(test_support::contains(bytes_of_journal(on), rekey_marker));
  EXPECT_TRUE(test_support::contains(bytes_of_journal(on), "LLLLLLLL"));
  compact_closed(on, {rekey_new});
  const std::string all = bytes_of_journal(on);
  EXPECT_FALSE(test_support::contains(all, rekey_marker));
  EXPECT_FALSE(test_support::contains(all, "LLLLLLLL"));
  for (const char* name : {"box/put", "value", "keep", "sent"})
    EXPECT_TRUE(test_support::contains(all, name)) << name;
  EXPECT_EQ(rekey_opening(on, {}), errc::wrong_key);
  rekey_session(on, {rekey_new}, look_into_box, 1h);
}

TEST(durable_rekey, the_engine_changes_the_key_of_what_it_compacts_by_itself) {
  const stage on;
  const auto options_with = [&](const rekey_keys& keys) {
    durable::engine_options options = rekey_options(on, keys);
    options.retention = 1min;
    return options;
  };
  const auto many = [](int from) {
    return [from](durable::engine& e) -> task<> {
      for (int i = from; i < from + 40; ++i) {
        const std::string id = "p" + std::to_string(i);
        auto run = co_await e.start<std::string>("box/put", {.id = id, .key = "k"},
                                                 rekey_marker + std::string(4000, 'x'));
        (void)co_await run.result();
      }
      co_await weir::sleep(2min);
      co_await weir::sleep(2min);
    };
  };
  sim::run({.seed = 1, .start_time = day0},
           with_open_engine(options_with({rekey_old}), add_rekeyed, many(0)));
  sim::run({.seed = 2, .start_time = day0 + 1h},
           with_open_engine(options_with({rekey_new, {rekey_old}}), add_rekeyed, many(100)));
  sim::run(
      {.seed = 3, .start_time = day0 + 2h},
      with_open_engine(options_with({rekey_new}), add_rekeyed, [](durable::engine& e) -> task<> {
        auto state = co_await e.start<std::string>("box/get", {.key = "k"});
        EXPECT_EQ(co_await state.result(), rekey_marker + std::string(4000, 'x'));
        EXPECT_TRUE(e.get("sent"));
      }));
}

// ------------------------------------------------------------------ states in slices

namespace {

/// Knows the largest write with something in it.
class measuring_disk final : public disk_support::forwarding_disk {
 public:
  std::size_t largest = 0;

  std::unique_ptr<weir::disk_file> open(const std::string& path, weir::open_mode mode) override {
    return std::make_unique<file>(*this, forwarding_disk::open(path, mode));
  }

 private:
  class file final : public disk_support::forwarding_file {
   public:
    file(measuring_disk& of, std::unique_ptr<weir::disk_file> below)
        : forwarding_file(std::move(below)), of_(of) {}
    std::size_t pwrite(std::span<const std::byte> from, std::uint64_t offset) override {
      const auto zero = [](std::byte b) { return b == std::byte{0}; };
      if (!std::all_of(from.begin(), from.end(), zero))
        of_.largest = std::max(of_.largest, from.size());
      return forwarding_file::pwrite(from, offset);
    }

   private:
    measuring_disk& of_;
  };
};

task<int> adds_large(int n) {
  auto total = weir::stored<int>("total");
  const std::optional<int> old = co_await total.get();
  total.set(old.value_or(0) + n);
  weir::stored<std::string>("filler").set(std::string(4000, 'f'));
  co_return old.value_or(0) + n;
}

void add_large(durable::engine& e) { e.add_object("large", {{"add", adds_large}}); }

}  // namespace

// About 2 MB of states, while turns go on; no write has more than a slice and what the turns wrote.
TEST(durable_rekey, a_compaction_writes_the_states_of_objects_in_slices_beside_live_turns) {
  constexpr int keys = 500;
  const stage on;
  measuring_disk disk;
  durable::engine_options options = options_for(on);
  options.disk = &disk;
  options.retention = 1min;
  options.segment_bytes = 16 * smallest_segment;
  auto add = [](durable::engine& e, int key, int n) -> task<int> {
    const std::string name = "k" + std::to_string(key);
    auto run = co_await e.start<int>("large/add", {.key = name}, n);
    co_return co_await run.result();
  };
  auto use = [&](durable::engine& e) -> task<> {
    for (int key = 0; key < keys; ++key) (void)co_await add(e, key, 1);
    disk.largest = 0;
    co_await weir::sleep(61s);  // all are forgotten, and the compaction begins
    for (int key = 0; key < keys; key += 25) EXPECT_EQ(co_await add(e, key, 10), 11);
    co_await weir::sleep(2min);
    bool compacted = false;
    for (const auto& entry : std::filesystem::directory_iterator(on.journal()))
      if (weir::detail::snapshot_number(entry.path().filename().string())) compacted = true;
    EXPECT_TRUE(compacted);
    EXPECT_LE(disk.largest, std::size_t{160} << 10);
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, add_large, use));
  auto look = [&](durable::engine& e) -> task<> {
    for (int key = 0; key < keys; ++key) EXPECT_EQ(co_await add(e, key, 0), key % 25 == 0 ? 11 : 1);
  };
  sim::run({.seed = 1, .start_time = day0 + 1h}, with_open_engine(options, add_large, look));
}
