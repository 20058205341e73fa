// SPDX-License-Identifier: MIT
// Processes in real time, killed by SIGKILL at any moment, with a ledger outside of the journal.
// WEIR_KILLS is how often (200 by default, 10,000 in a torture run).
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "durable/support/stage.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;

namespace {

int kills() {
  const char* given = std::getenv("WEIR_KILLS");
  return given == nullptr ? 200 : std::atoi(given);
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
bool life_until_line(const stage& on, int first, int count, std::uint64_t lines_until_death) {
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
      weir::run(working_process(on, first, count, lines_until_death == never_dies));
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
  const int cycles = kills();
  const int rounds = (cycles + 49) / 50;  // a journal each
  disk_support::generator random(20301);
  for (int round = 0; round < rounds; ++round) {
    const stage on;
    int first = 0;
    int most = 0;
    for (int i = 0; i < 50; ++i) {
      const int count = static_cast<int>(random.below(3));
      most = std::max(most, first + count);
      const bool ended = life_until_line(on, first, count, 1 + random.below(25));
      if (ended || random.chance(0.5)) first += count;
    }
    EXPECT_TRUE(life_until_line(on, most, 1, never_dies));
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
