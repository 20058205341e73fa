// SPDX-License-Identifier: MIT
// Processes in real time, killed by SIGKILL at any moment, with a ledger outside of the journal:
// runs with steps and awakeables; and objects, beside compactions and changes of the key.
// WEIR_KILLS is how often, for each of the two (200 and 100 by default, 10,000 in a torture run).
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "durable/compact_journal.hpp"
#include "durable/snapshot.hpp"
#include "durable/support/stage.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;

namespace {

int kills(int unless_given) {
  const char* given = std::getenv("WEIR_KILLS");
  return given == nullptr ? unless_given : std::atoi(given);
}

int progress = -1;  // a pipe to the test; every line of the ledger is a byte

void mark(const std::string& line) {
  note(line);
  if (progress >= 0 && ::write(progress, "x", 1) != 1) ::_exit(3);
}

std::string unique_token() {
  static int made = 0;
  return std::to_string(::getpid()) + "." + std::to_string(++made);
}

/// The awakeables of this process's runs, to be answered; used by steps and by the main fiber.
weir::queue<std::string>* questions_of_process = nullptr;

task<std::string> part(int n, std::string name) {
  co_return co_await weir::step(name, [&] {
    mark(name + " " + std::to_string(n));
    return unique_token();
  });
}

task<std::string> work(int n) {
  const std::string number = std::to_string(n);
  const std::string a = co_await weir::step("a", [&] {
    const std::string token = unique_token();
    mark("a " + number + " " + token);
    return token;
  });
  auto answer = weir::awakeable<std::string>("answer");
  co_await weir::step("ask", [&] {
    mark("ask " + number + " " + std::string(answer.id()));
    (void)questions_of_process->try_push(number + " " + std::string(answer.id()));
  });
  const std::string v = co_await answer.wait();
  co_await weir::sleep(1ms);
  (void)co_await weir::all(part(n, "left"), part(n, "right"));
  co_await weir::step("b", [&] { mark("b " + number + " " + a + " " + v); });
  co_return a + " " + v;
}

/// Answers; what was acknowledged is in the ledger.
task<> answer(durable::engine& e, std::string question) {
  std::istringstream in(question);
  std::string number;
  std::string id;
  in >> number >> id;
  const std::string value = unique_token();
  if (co_await e.resolve(id, value)) mark("answered " + number + " " + value);
}

task<> start_work(durable::engine& e, int n) {
  const std::string id = "r" + std::to_string(n);
  auto run = co_await e.start<std::string>("work", {.id = id}, n);
  mark("ack " + std::to_string(n));
  mark("end " + std::to_string(n) + " " + co_await run.result());
}

/// The runs whose end somebody has seen.
std::set<int> ended_runs() {
  std::set<int> all;
  for (const std::string& rest : noted("end ")) all.insert(std::stoi(rest));
  return all;
}

/// One process: answers what is open, starts new runs, and ends when all have ended. The last one
/// asks for the results of all runs again.
task<> working_process(const stage& on, int first, int count, bool is_last) {
  weir::queue<std::string> questions(weir::unbounded);
  questions_of_process = &questions;
  durable::engine_options options;
  options.path = on.journal();
  options.segment_bytes = smallest_segment;
  auto body = [&](durable::engine& e) -> task<> {
    e.add("work", work);
    co_await e.open();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto answers = [&]() -> task<> {
        while (auto q = co_await questions.next()) co_await answer(e, *q);
      };
      s.background(answers);
      for (const std::string& line : noted("ask ")) (void)questions.try_push(line);
      const std::set<int> ended = is_last ? std::set<int>() : ended_runs();
      for (int n = 0; n < first + count; ++n) {
        const bool known = e.get("r" + std::to_string(n)).has_value();
        if ((known || n >= first) && !ended.contains(n)) s.spawn(start_work(e, n));
      }
      co_await s.join();
    });
  };
  co_await durable::with_engine(options, body);
  questions_of_process = nullptr;
}

constexpr std::uint64_t never_dies = 1'000'000;

/// Starts a process and kills it after so many lines of the ledger; true if it ended before.
bool life_until_line(const std::function<task<>()>& process, std::uint64_t lines_until_death) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::close(ends[0]);
    progress = ends[1];
    int code = 0;
    try {
      weir::run(process());
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in a life: %s\n", e.what());
      code = 2;
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  char byte = 0;
  bool ended = false;
  for (std::uint64_t i = 0; i < lines_until_death && !ended; ++i) {
    ended = ::read(ends[0], &byte, 1) != 1;
  }
  ::kill(child, SIGKILL);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(ends[0]);
  if (ended) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  return ended;
}

using words = std::vector<std::string>;

/// What the ledger says about one run, in its order.
struct account {
  bool acknowledged = false;
  std::string answered;
  std::set<std::string> endings;
  std::string token;  // of the last run of step a
  std::string b;      // what step b saw
  lines wrong;

  void read(const words& w) {
    if (w[0] == "ack") acknowledged = true;
    if (w[0] == "answered") {
      if (!answered.empty()) wrong.push_back("two first answers");
      answered = w[2];
    }
    if (w[0] == "a") {
      if (!b.empty()) wrong.push_back("step a after step b");
      token = w[2];
    }
    if (w[0] == "b") {
      const std::string saw = w[2] + " " + w[3];
      if (!b.empty() && b != saw) wrong.push_back("step b saw two results");
      if (w[2] != token) wrong.push_back("step b saw an old result of a");
      b = saw;
    }
    if (w[0] == "end") endings.insert(w[2] + " " + w[3]);
  }
};

std::map<int, account> accounts() {
  std::map<int, account> all;
  for (const std::string& line : ledger()) {
    std::istringstream in(line);
    words w;
    for (std::string word; in >> word;) w.push_back(word);
    all[std::stoi(w.at(1))].read(w);
  }
  return all;
}

}  // namespace

TEST(durable_kill, nothing_acknowledged_is_lost_and_nothing_recorded_is_done_again) {
  const int cycles = kills(200);
  const int rounds = (cycles + 49) / 50;  // a journal each
  disk_support::generator random(20301);
  for (int round = 0; round < rounds; ++round) {
    const stage on;
    int first = 0;
    int most = 0;
    for (int i = 0; i < 50; ++i) {
      const int count = static_cast<int>(random.below(3));
      most = std::max(most, first + count);
      auto process = [&] { return working_process(on, first, count, false); };
      const bool ended = life_until_line(process, 1 + random.below(25));
      if (ended || random.chance(0.5)) first += count;
    }
    EXPECT_TRUE(life_until_line([&] { return working_process(on, most, 1, true); }, never_dies));
    int acknowledged = 0;
    for (const auto& [n, a] : accounts()) {
      SCOPED_TRACE("run " + std::to_string(n) + " of round " + std::to_string(round));
      EXPECT_TRUE(a.wrong.empty()) << test_support::joined(a.wrong);
      if (!a.acknowledged) continue;
      ++acknowledged;
      EXPECT_EQ(a.endings.size(), 1u);
      if (a.endings.empty()) continue;
      EXPECT_EQ(*a.endings.begin(), a.b);
      EXPECT_TRUE(a.answered.empty() || test_support::contains(a.b, " " + a.answered)) << a.b;
    }
    EXPECT_GT(acknowledged, 0);
    if (testing::Test::HasFailure()) return;
  }
}

// ------------------------------------------------------------------ objects, compactions and keys

namespace {

constexpr int killed_keys = 3;

/// Appends the number at the beginning of the text to what the key has seen.
task<int> sees_number(std::string text) {
  auto seen = weir::stored<std::vector<int>>("seen");
  const auto old = co_await seen.get();
  std::vector<int> now = old.value_or(std::vector<int>{});
  now.push_back(std::stoi(text));
  seen.set(now);
  co_await weir::step("look", [&] { mark("turn " + std::to_string(now.back())); });
  co_return static_cast<int>(now.size());
}

task<std::vector<int>> numbers_seen() {
  const auto seen = co_await weir::stored<std::vector<int>>("seen").get();
  co_return seen.value_or(std::vector<int>{});
}

/// Its options, with keys that outlive them. Ended runs are forgotten at once, so that there is
/// always something to compact.
struct killed_engine {
  killed_engine(const stage& on, std::size_t present) {
    options.path = on.journal();
    options.segment_bytes = smallest_segment;
    options.retention = 0s;
    options.report_blocked = false;
    options.encryption_key = keys[present % keys.size()];
    options.old_keys = old;
  }
  killed_engine(const killed_engine&) = delete;
  killed_engine& operator=(const killed_engine&) = delete;

  const std::array<std::string, 3> keys{std::string(32, 'a'), std::string(32, 'b'),
                                        std::string(32, 'c')};
  const std::array<std::string_view, 3> old{keys[0], keys[1], keys[2]};
  durable::engine_options options;
};

task<> with_seers(const durable::engine_options& options, user use) {
  auto body = [&](durable::engine& e) -> task<> {
    e.add_object("seer", {{"see", sees_number}, {"seen", durable::shared(numbers_seen)}});
    co_await e.open();
    co_await use(e);
  };
  co_await durable::with_engine(options, body);
}

/// Its result may be forgotten before it is asked for.
task<> show_number(durable::engine& e, int n) {
  const std::string number = std::to_string(n);
  const std::string key = "k" + std::to_string(n % killed_keys);
  const std::string id = "n" + number;
  auto run =
      co_await e.start<int>("seer/see", {.id = id, .key = key}, number + std::string(5000, ' '));
  mark("shown " + number);
  const auto at = co_await weir::settle(run.result());
  if (at.is_value()) mark("seen " + number + " " + std::to_string(at.value()));
}

task<> showing_process(const stage& on, std::size_t life, int first, int count) {
  const killed_engine engine(on, life / 7);
  auto use = [&](durable::engine& e) -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int n = first; n < first + count; ++n) s.spawn(show_number(e, n));
      co_await s.join();
    });
    // What an earlier process has begun ends before this.
    for (int k = 0; k < killed_keys; ++k) {
      const std::string key = "k" + std::to_string(k);
      (void)co_await e.start("seer/see", {.key = key}, "-1");
    }
    mark("idle 0");
  };
  co_await with_seers(engine.options, use);
}

/// Compacts with one key, opens with that key alone, and writes what the objects have seen into the
/// ledger.
void report_what_was_seen(const stage& on) {
  whole_life([&] {
    const killed_engine last(on, 1);
    durable::engine_options options = last.options;
    (void)weir::detail::compact_journal(options);
    options.old_keys = {};
    auto report = [&](durable::engine& e) -> task<> {
      co_await weir::sleep(1ms);
      for (int k = 0; k < killed_keys; ++k) {
        const std::string key = "k" + std::to_string(k);
        // A turn after all others, whose result tells what they have left.
        auto last_turn = co_await e.start<int>("seer/see", {.key = key}, "-2");
        (void)co_await weir::settle(last_turn.result());
        auto run = co_await e.start<std::vector<int>>("seer/seen", {.key = key});
        std::string line = "has " + std::to_string(k);
        const auto seen = co_await weir::settle(run.result());
        for (const int n : seen.value()) line += " " + std::to_string(n);
        note(line);
      }
    };
    options.retention = 1h;
    weir::run(with_seers(options, report));
  });
}

std::vector<std::vector<int>> reported() {
  std::vector<std::vector<int>> all(killed_keys);
  for (const std::string& line : noted("has ")) {
    std::istringstream in(line);
    std::size_t key = 0;
    in >> key;
    for (int n = 0; in >> n;) all.at(key).push_back(n);
  }
  return all;
}

void expect_seen_once(const std::vector<std::vector<int>>& seen) {
  std::multiset<int> all;
  for (const auto& one : seen) all.insert(one.begin(), one.end());
  for (const std::string& line : noted("shown ")) {
    const int n = std::stoi(line);
    EXPECT_EQ(all.count(n), 1u) << n;
  }
  for (const int n : all)
    if (n >= 0) {
      EXPECT_EQ(all.count(n), 1u) << n;
    }
  for (const std::string& line : noted("seen ")) {
    std::istringstream in(line);
    std::size_t n = 0;
    std::size_t at = 0;
    in >> n >> at;
    const std::vector<int>& of_key = seen.at(n % killed_keys);
    ASSERT_LE(at, of_key.size());
    EXPECT_EQ(of_key[at - 1], static_cast<int>(n));
  }
}

bool has_snapshot(const stage& on) {
  for (const auto& entry : std::filesystem::directory_iterator(on.journal()))
    if (weir::detail::snapshot_number(entry.path().filename().string())) return true;
  return false;
}

}  // namespace

TEST(durable_kill, objects_keep_every_turn_in_compactions_and_changes_of_the_key) {
  const int cycles = kills(100);
  const int rounds = (cycles + 49) / 50;  // a journal each
  disk_support::generator random(777);
  int compacted = 0;
  for (int round = 0; round < rounds; ++round) {
    const stage on;
    int first = 0;
    for (std::size_t life = 0; life < 50; ++life) {
      const int count = 1 + static_cast<int>(random.below(8));
      auto process = [&] { return showing_process(on, life, first, count); };
      (void)life_until_line(process, 1 + random.below(30));
      first += count;  // a number is shown once, even if it was not acknowledged
    }
    if (has_snapshot(on)) ++compacted;
    report_what_was_seen(on);
    SCOPED_TRACE("round " + std::to_string(round));
    EXPECT_GT(noted("shown ").size(), 0u);
    expect_seen_once(reported());
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(2 * compacted, rounds);
}
