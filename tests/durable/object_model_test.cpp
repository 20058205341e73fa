// SPDX-License-Identifier: MIT
// Random programs of many keys, turns, sends, calls, failures, cancellations and crashes, compared
// with a model: a turn is in the log of its key exactly once if it has completed, and not at all
// otherwise; turns of one key do not overlap and keep the order of their starts; exactly the sends
// of completed turns are started.
#include <map>
#include <random>
#include <set>

#include "durable/journal.hpp"
#include "durable/support/stage.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

constexpr int model_keys = 4;
constexpr int model_turns = 24;

/// What the turn with this number does; it follows from the number, so that a replay does the same.
struct turn_plan {
  explicit turn_plan(std::uint64_t number) : random(number * 0x9e3779b97f4a7c15U + 1) {}
  bool one_in(unsigned n) { return random() % n == 0; }
  std::string key() { return "k" + std::to_string(random() % model_keys); }
  std::mt19937_64 random;
};

/// Turns that are in their handler in this life, by key.
std::map<std::string, std::string> turns_under_way;

struct under_way {
  explicit under_way(std::string name) : key(weir::this_key()), id(std::move(name)) {
    EXPECT_EQ(turns_under_way.count(key), 0u) << id << " beside " << turns_under_way[key];
    turns_under_way[key] = id;
  }
  under_way(const under_way&) = delete;
  under_way& operator=(const under_way&) = delete;
  ~under_way() { turns_under_way.erase(key); }
  std::string key;
  std::string id;
};

struct model_input {
  std::string id;
  std::uint64_t number;
  int depth;
};
WEIR_DESCRIBE(model_input, id, number, depth);

task<> send_some(const model_input& in, turn_plan& plan) {
  for (int i = 0; i < 2; ++i) {
    if (in.depth == 2 || !plan.one_in(3)) continue;
    model_input next{in.id + "s" + std::to_string(i), plan.random() % 100'000, in.depth + 1};
    const std::string key = plan.key();
    const weir::duration delay = plan.one_in(2) ? weir::duration(1min) : weir::duration(0);
    (void)co_await weir::send("o/turn", next, {.delay = delay, .id = next.id, .key = key});
  }
}

task<int> model_turn(model_input in) {
  const under_way here(in.id);
  turn_plan plan(in.number);
  auto log = weir::stored<std::vector<std::string>>("log");
  auto count = weir::stored<int>("count");
  if (plan.one_in(3)) co_await weir::sleep(std::chrono::seconds(plan.random() % 100));
  auto old = co_await log.get();
  std::vector<std::string> now = old.value_or(std::vector<std::string>{});
  now.push_back(in.id);
  log.set(now);
  co_await send_some(in, plan);
  if (plan.one_in(3)) co_await weir::step("work", [] { return 1; });
  if (plan.one_in(5)) {
    const std::string key = weir::this_key();
    (void)co_await weir::call<int>("o/size", weir::unit{}, {.key = key});
  }
  const std::optional<int> n = co_await count.get();
  EXPECT_EQ(n.value_or(0) + 1, static_cast<int>(now.size())) << in.id;
  count.set(static_cast<int>(now.size()));
  if (plan.one_in(6)) throw weir::terminal_error("as planned");
  co_return static_cast<int>(now.size());
}

task<int> model_size() {
  auto log = co_await weir::stored<std::vector<std::string>>("log").get();
  auto count = co_await weir::stored<int>("count").get();
  const int size = static_cast<int>(log.value_or(lines{}).size());
  EXPECT_EQ(size, count.value_or(0));
  co_return size;
}

task<lines> model_log() {
  auto log = co_await weir::stored<lines>("log").get();
  co_return log.value_or(lines{});
}

void add_model(durable::engine& e) {
  e.add_object("o", {{"turn", model_turn},
                     {"size", durable::shared(model_size)},
                     {"log", durable::shared(model_log)}});
}

std::string model_id(int i) { return "t" + std::to_string(100 + i); }
std::string key_of_turn(int i, std::uint64_t seed) {
  return turn_plan(seed + static_cast<std::uint64_t>(i) * 977).key();
}

task<> start_and_cancel(durable::engine& e, std::uint64_t seed, std::mt19937_64& random) {
  for (int i = 0; i < model_turns; ++i) {
    const model_input in{model_id(i), seed * 1000 + static_cast<std::uint64_t>(i), 0};
    const std::string key = key_of_turn(i, seed);
    (void)co_await e.start<int>("o/turn", {.id = in.id, .key = key}, in);
    if (random() % 4 == 0) co_await weir::sleep(std::chrono::seconds(random() % 60));
    if (random() % 6 == 0)
      (void)e.cancel(model_id(static_cast<int>(random() % static_cast<unsigned>(i + 1))));
  }
}

/// What the journal keeps after a crash: a prefix of its records.
void crash_somewhere(const stage& on, std::mt19937_64& random) {
  struct kept final : weir::detail::record_reader {
    void see(const weir::detail::record_head& head, std::string_view payload, std::uint64_t,
             weir::detail::record_place) override {
      all.emplace_back(head, std::string(payload));
    }
    std::vector<std::pair<weir::detail::record_head, std::string>> all;
  } records;
  std::array<unsigned char, 16> secret{};
  {
    weir::detail::journal from({.path = on.journal(), .segment_bytes = smallest_segment});
    from.open(records);
    secret = from.secret();
  }
  std::filesystem::remove_all(on.journal());
  weir::detail::journal_options options;
  options.path = on.journal();
  options.segment_bytes = smallest_segment;
  options.sync = false;
  options.secret = secret;
  weir::detail::journal to(options);
  kept nothing;
  to.open(nothing);
  const std::size_t left = records.all.size() - random() % (1 + records.all.size() / 2);
  for (std::size_t i = 0; i < left; ++i) to.append(records.all[i].first, records.all[i].second);
  if (auto batch = to.take()) {
    to.commit(*batch);
    to.committed(std::move(batch));
  }
}

void check_log(const std::string& key, const lines& log, durable::engine& e, std::uint64_t seed) {
  std::string last;
  for (const std::string& id : log) {
    EXPECT_EQ(e.get(id)->state, run_state::completed) << id;
    if (id.find('s') != std::string::npos) continue;
    EXPECT_LT(last, id) << "seed " << seed << " key " << key << ": " << test_support::joined(log);
    last = id;
  }
}

task<> check_model(durable::engine& e, std::uint64_t seed) {
  std::multiset<std::string> committed;
  for (int k = 0; k < model_keys; ++k) {
    const std::string key = "k" + std::to_string(k);
    auto run = co_await e.start<lines>("o/log", {.key = key});
    const lines log = co_await run.result();
    check_log(key, log, e, seed);
    committed.insert(log.begin(), log.end());
  }
  std::multiset<std::string> completed;
  for (const durable::run_info& info : e.list({.handler = "o/turn"})) {
    EXPECT_NE(info.state, run_state::suspended) << info.id << ": " << info.message;
    EXPECT_NE(info.state, run_state::running) << info.id;
    EXPECT_NE(info.state, run_state::blocked) << info.id << ": " << info.message;
    if (info.state == run_state::completed) completed.insert(info.id);
    const auto sent = info.id.rfind('s');
    if (sent == std::string::npos) continue;
    const std::string sender = info.id.substr(0, sent);
    EXPECT_EQ(e.get(sender)->state, run_state::completed) << info.id << " was sent";
  }
  EXPECT_EQ(committed, completed) << "seed " << seed;
}

void play_model(std::uint64_t seed) {
  const stage on;
  std::mt19937_64 random(seed);
  weir::duration later{};
  for (int life = 0; life < 4; ++life) {
    turns_under_way.clear();
    session(
        on, add_model,
        [&](durable::engine& e) -> task<> {
          co_await start_and_cancel(e, seed, random);
          co_await weir::sleep(std::chrono::seconds(random() % 300));
        },
        later);
    later += 1h;
    crash_somewhere(on, random);
  }
  turns_under_way.clear();
  session(
      on, add_model,
      [&](durable::engine& e) -> task<> {
        co_await start_and_cancel(e, seed, random);
        co_await weir::sleep(10h);
        co_await check_model(e, seed);
      },
      later);
}

}  // namespace

TEST(durable_object_model, random_programs_with_crashes_leave_what_the_model_says) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    play_model(seed);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
}
