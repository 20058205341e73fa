// SPDX-License-Identifier: MIT
// Crashes between the records of turns. A program of turns, sends, delays, calls, failures and
// reads is played to its end; then its journal is cut behind every record, as a crash could have
// cut it, and each of these is resumed: what the objects have in the end, and the order of the
// turns, must be the same, and no turn may count twice.
#include <map>

#include "durable/journal.hpp"
#include "durable/run_record.hpp"
#include "durable/support/stage.hpp"
#include "durable/turn_record.hpp"

using namespace durable_test;

namespace {

namespace d = weir::detail;

struct object_record {
  d::record_head head;
  std::string payload;
};

struct object_records final : d::record_reader {
  void see(const d::record_head& head, std::string_view payload, std::uint64_t,
           d::record_place) override {
    all.push_back({head, std::string(payload)});
  }
  std::vector<object_record> all;
};

using journal_secret = std::array<unsigned char, 16>;

std::vector<object_record> object_records_of(const std::string& path, journal_secret& secret) {
  d::journal from({.path = path, .segment_bytes = smallest_segment});
  object_records found;
  from.open(found);
  secret = from.secret();
  return found.all;
}

void write_object_records(const std::string& path, const std::vector<object_record>& all,
                          std::size_t count, const journal_secret& secret) {
  d::journal_options options;
  options.path = path;
  options.segment_bytes = smallest_segment;
  options.sync = false;
  options.secret = secret;
  d::journal to(options);
  object_records nothing;
  to.open(nothing);
  for (std::size_t i = 0; i < count; ++i) to.append(all[i].head, all[i].payload);
  if (auto batch = to.take()) {
    to.commit(*batch);
    to.committed(std::move(batch));
  }
}

// ------------------------------------------------------------------ the program

/// Appends `what` to the log of the key; `fail`: after that, and after a send.
task<int> logs(std::string what) {
  auto log = weir::stored<std::vector<std::string>>("log");
  auto old = co_await log.get();
  std::vector<std::string> now = old.value_or(std::vector<std::string>{});
  now.push_back(what);
  log.set(now);
  co_await weir::step("work", [] { return 0; });
  if (what.starts_with("relay ")) {
    const std::string rest = what.substr(6);
    (void)co_await weir::send("log/put", rest, {.key = "relayed"});
    (void)co_await weir::send("log/put", rest + " late", {.delay = 10min, .key = "relayed"});
    (void)co_await weir::call<int>("log/put", rest + " called", {.key = "called"});
  }
  if (what.ends_with("fails")) throw weir::terminal_error("asked to fail");
  co_await weir::sleep(1min);
  co_return static_cast<int>(now.size());
}

task<std::vector<std::string>> log_now() {
  auto log = co_await weir::stored<std::vector<std::string>>("log").get();
  co_return log.value_or(std::vector<std::string>{});
}

task<> two_reads() {
  auto log = weir::stored<std::vector<std::string>>("log");
  (void)co_await log.get();
  co_await weir::sleep(2min);
  (void)co_await log.get();
}

void add_log(durable::engine& e) {
  e.add_object(
      "log",
      {{"put", logs}, {"now", durable::shared(log_now)}, {"look", durable::shared(two_reads)}});
}

using logs_by_key = std::map<std::string, std::vector<std::string>>;

const std::vector<std::pair<std::string, std::string>> puts{
    {"a", "1"},           {"a", "relay x"}, {"b", "1"},      {"a", "relay y fails"},
    {"b", "relay fails"}, {"a", "2"},       {"b", "relay z"}};

task<> play(durable::engine& e, logs_by_key& out) {
  std::vector<durable::run_handle<int>> runs;
  for (std::size_t i = 0; i < puts.size(); ++i) {
    const std::string id = "put" + std::to_string(i);
    runs.push_back(
        co_await e.start<int>("log/put", {.id = id, .key = puts[i].first}, puts[i].second));
  }
  auto look = co_await e.start("log/look", {.id = "look", .key = "a"});
  co_await look.result();
  for (const auto& run : runs) (void)co_await test_support::attempt([&] { return run.result(); });
  co_await weir::sleep(1h);
  for (const char* key : {"a", "b", "relayed", "called"}) {
    auto now = co_await e.start<std::vector<std::string>>("log/now", {.key = key});
    out[key] = co_await now.result();
  }
}

logs_by_key played(const stage& on, weir::duration later = 0ns) {
  logs_by_key out;
  session(on, add_log, [&](durable::engine& e) { return play(e, out); }, later);
  return out;
}

lines sorted_lines(lines all) {
  std::sort(all.begin(), all.end());
  return all;
}

/// The keys to which all puts go directly are in order; others get theirs from several turns.
void expect_same(const logs_by_key& got, const logs_by_key& want, const std::string& where) {
  for (const char* key : {"a", "b"}) EXPECT_EQ(got.at(key), want.at(key)) << where << key;
  EXPECT_EQ(sorted_lines(got.at("relayed")), sorted_lines(want.at("relayed"))) << where;
  // A call of a turn that a crash repeats is the same call, so it has happened once.
  EXPECT_EQ(sorted_lines(got.at("called")), sorted_lines(want.at("called"))) << where;
}

}  // namespace

TEST(durable_object_crash, journals_cut_behind_every_record_lead_to_the_same_state) {
  const stage whole;
  const logs_by_key want = played(whole);
  EXPECT_EQ(want.at("a"), (lines{"1", "relay x", "2"}));
  EXPECT_EQ(want.at("b"), (lines{"1", "relay z"}));
  EXPECT_EQ(sorted_lines(want.at("relayed")), (lines{"x", "x late", "z", "z late"}));
  journal_secret secret{};
  const auto all = object_records_of(whole.journal(), secret);
  EXPECT_GT(all.size(), 60u);
  for (std::size_t count = 0; count <= all.size(); ++count) {
    const stage cut;
    write_object_records(cut.journal(), all, count, secret);
    expect_same(played(cut, count % 2 == 0 ? 0h : 1h), want, "cut " + std::to_string(count) + ": ");
  }
}

TEST(durable_object_crash, a_second_cut_anywhere_in_the_resumed_journal_changes_nothing_either) {
  const stage whole;
  const logs_by_key want = played(whole);
  journal_secret secret{};
  const auto all = object_records_of(whole.journal(), secret);
  for (std::size_t first = 7; first <= all.size(); first += 13) {
    const stage cut;
    write_object_records(cut.journal(), all, first, secret);
    (void)played(cut, 30min);
    const auto resumed = object_records_of(cut.journal(), secret);
    for (std::size_t second = first; second <= resumed.size(); second += 5) {
      const stage again;
      write_object_records(again.journal(), resumed, second, secret);
      expect_same(played(again, 1h), want,
                  std::to_string(first) + " and " + std::to_string(second) + ": ");
    }
  }
}

TEST(durable_object_crash, a_life_that_dies_in_any_step_of_a_turn_shows_none_of_it) {
  auto adds = [](int n) -> task<int> {
    auto total = weir::stored<int>("total");
    const std::optional<int> old = co_await total.get();
    total.set(old.value_or(0) + n);
    (void)co_await weir::send("sum/add", n, {.key = "sum"});
    co_await weir::step("one", [] { effect("one"); });
    co_await weir::step("two", [] { effect("two"); });
    co_return old.value_or(0) + n;
  };
  auto plain_add = [](int n) -> task<int> {
    auto total = weir::stored<int>("total");
    const std::optional<int> old = co_await total.get();
    total.set(old.value_or(0) + n);
    co_return old.value_or(0) + n;
  };
  auto look = []() -> task<int> {
    const std::optional<int> now = co_await weir::stored<int>("total").get();
    co_return now.value_or(0);
  };
  auto setup = [&](durable::engine& e) {
    e.add_object("cart", {{"add", adds}, {"look", durable::shared(look)}});
    e.add_object("sum", {{"add", plain_add}, {"look", durable::shared(look)}});
  };
  auto total = [](durable::engine& e, const char* handler, const char* key) -> task<int> {
    auto run = co_await e.start<int>(handler, {.key = key});
    co_return co_await run.result();
  };
  for (long k = 0; k < 6; ++k) {
    const stage on;
    EXPECT_EQ(life([&] {
                plan = {.at = k};
                session(on, setup, [](durable::engine& e) -> task<> {
                  for (int i = 0; i < 3; ++i)
                    (void)co_await e.start<int>("cart/add",
                                                {.id = "r" + std::to_string(i), .key = "k"}, 1);
                  co_await weir::sleep(1h);
                });
              }),
              crashed);
    session(on, setup, [&](durable::engine& e) -> task<> {
      // The first one looks before the turn that was cut short has ended.
      EXPECT_EQ(co_await total(e, "cart/look", "k"), k / 2);
      const int sum = co_await total(e, "sum/look", "sum");
      EXPECT_LE(sum, co_await total(e, "cart/look", "k"));
      for (int i = 0; i < 3; ++i) {
        auto run =
            co_await e.start<int>("cart/add", {.id = "r" + std::to_string(i), .key = "k"}, 1);
        EXPECT_EQ(co_await run.result(), i + 1);
      }
      co_await weir::sleep(1s);
      EXPECT_EQ(co_await total(e, "sum/look", "sum"), 3);
    });
  }
}

TEST(durable_object_crash, the_state_of_all_keys_as_records_replaces_the_turns) {
  const stage on;
  auto put = [](int n) -> task<> {
    weir::stored<int>("n").set(n);
    if (n == 0) weir::stored<int>("n").clear();
    co_return;
  };
  auto get = []() -> task<int> {
    const std::optional<int> n = co_await weir::stored<int>("n").get();
    co_return n.value_or(-1);
  };
  auto setup = [&](durable::engine& e) {
    e.add_object("o", {{"put", put}, {"get", durable::shared(get)}});
  };
  {
    d::journal_options options;
    options.path = on.journal();
    options.segment_bytes = smallest_segment;
    d::journal to(options);
    object_records nothing;
    to.open(nothing);
    for (const int n : {1, 2}) {  // the later one replaces the earlier one
      const std::string value = std::to_string(n);
      d::object_state_record state{"o", "k", {{"n", value}}};
      d::payload_writer payload;
      state.write(payload);
      to.append({.type = static_cast<std::uint16_t>(d::record_type::object_state)}, payload.view());
    }
    auto batch = to.take();
    to.commit(*batch);
    to.committed(std::move(batch));
  }
  auto value = [](durable::engine& e, const char* key) -> task<int> {
    auto run = co_await e.start<int>("o/get", {.key = key});
    co_return co_await run.result();
  };
  session(on, setup, [&](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await value(e, "k"), 2);
    for (const int n : {5, 0}) {
      auto run = co_await e.start("o/put", {.key = n == 0 ? "k" : "j"}, n);
      co_await run.result();
    }
  });
  session(on, setup, [&](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await value(e, "k"), -1);
    EXPECT_EQ(co_await value(e, "j"), 5);
  });
}
