// SPDX-License-Identifier: MIT
// A run is played to its end; then its journal is cut behind every single record, as a crash could
// have cut it, and each of these is resumed: the result must be the same to the byte, and a step
// whose result was recorded must not run again.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <weir/durable.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "durable/journal.hpp"
#include "durable/run_record.hpp"
#include "durable/support/temporary_directory.hpp"

namespace {

using namespace std::chrono_literals;
using weir::task;
using weir::detail::record_head;
using weir_test::temporary_directory;
namespace durable = weir::durable;

constexpr std::int64_t segment_bytes = 64 * 1024;

struct kept_record {
  record_head head;
  std::string payload;
};

struct keeper final : weir::detail::record_reader {
  void see(const record_head& head, std::string_view payload, std::uint64_t,
           weir::detail::record_place) override {
    all.push_back({head, std::string(payload)});
  }
  std::vector<kept_record> all;
};

using secret_bytes = std::array<unsigned char, 16>;

std::vector<kept_record> records_of(const std::string& path, secret_bytes& of) {
  weir::detail::journal from({.path = path, .segment_bytes = segment_bytes});
  keeper found;
  from.open(found);
  of = from.secret();
  return found.all;
}

/// A journal of the first records of another one.
void write_cut(const std::string& path, const std::vector<kept_record>& all, std::size_t count,
               const secret_bytes& of) {
  weir::detail::journal_options options;
  options.path = path;
  options.segment_bytes = segment_bytes;
  options.sync = false;
  options.secret = of;
  weir::detail::journal to(options);
  keeper nothing;
  to.open(nothing);
  for (std::size_t i = 0; i < count; ++i) to.append(all[i].head, all[i].payload);
  if (auto batch = to.take()) {
    to.commit(*batch);
    to.committed(std::move(batch));
  }
}

/// How often each step ran in this life, and what was handed out.
std::map<std::string, int> times_run;
std::string published;

task<int> did(std::string name, int value) {
  co_return co_await weir::step(name, [&] {
    ++times_run[name];
    return value;
  });
}

// ------------------------------------------------------------------------------------- handlers

task<std::string> in_a_row(int n) {
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += co_await did("row" + std::to_string(i), n + i);
  co_await weir::sleep(10ms);
  co_return "row " + std::to_string(sum);
}

task<int> does_after(weir::duration d, int value) {
  co_await weir::sleep(d);
  co_return co_await did("after" + std::to_string(value), value);
}

task<std::string> at_the_same_time(int) {
  std::string out;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto slow = s.spawn(does_after(30ms, 1));
    auto fast = s.spawn(does_after(3ms, 2));
    const auto first = co_await weir::select(slow, fast);
    out += "select" + std::to_string(first);
    out += " " + std::to_string(co_await slow);
  });
  std::vector<task<int>> racing;
  racing.push_back(does_after(20ms, 3));
  racing.push_back(does_after(5ms, 4));
  out += " race" + std::to_string(co_await weir::race(std::move(racing)));
  co_return out;
}

task<std::string> limits_and_chance(int) {
  std::string out = std::to_string(weir::random() % 1000) + weir::uuid();
  try {
    co_await weir::with_timeout(5ms, does_after(50ms, 5));
  } catch (const weir::timeout_error&) {
    out += " late";
  }
  out += std::to_string(weir::now().time_since_epoch() > weir::duration::zero());
  co_await did("end", 0);
  co_return out;
}

task<std::string> asks_for_an_hour(int) {
  auto question = weir::awakeable<std::string>("question");
  co_await weir::step("publish", [&] {
    ++times_run["publish"];
    published = question.id();
    return 0;
  });
  const std::string answer = co_await weir::with_timeout(1h, question.wait());
  const int told = co_await weir::signal<int>("told").wait();
  co_await did("asked", 0);
  co_return answer + std::to_string(told);
}

task<int> doubles_its_input(int n) {
  const int v = co_await did("child" + std::to_string(n), n * 2);
  co_await weir::sleep(5ms);
  co_return v;
}

task<std::string> calls_and_sends(int n) {
  const int a = co_await weir::call<int>("child", n);
  const std::string id = co_await weir::send("child", n + 1, {.id = "sent"});
  const int b = co_await weir::call<int>("child", n + 2);
  co_return id + std::to_string(a + b);
}

task<std::string> undoes_after_failure(int) {
  std::string out;
  try {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      s.defer([&]() -> task<> { out += " undone" + std::to_string(co_await did("undo", 1)); });
      co_await did("do", 1);
      co_await weir::step("fails", [&]() -> int {
        ++times_run["fails"];
        throw weir::terminal_error("no");
      });
    });
  } catch (const weir::terminal_error& e) {
    out += e.what();
  }
  co_return out;
}

task<std::string> absorbs(int) {
  auto wait = []() -> task<> { co_await weir::sleep(1000h); };
  const weir::outcome<void> how = co_await weir::absorb(wait);
  co_await did("went on", 0);
  co_return how.is_cancelled() ? "absorbed" : "not cancelled";
}

// ------------------------------------------------------------------------------------- the lives

using action = std::function<task<>(durable::engine&, const std::string& id)>;

struct play {
  task<std::string> (*handler)(int);
  action act = [](durable::engine&, const std::string&) -> task<> { co_return; };
};

std::string live_through(const std::string& path, const play& p) {
  std::string result;
  times_run.clear();
  auto app = [&]() -> task<> {
    auto body = [&](durable::engine& e) -> task<> {
      e.add("h", p.handler);
      e.add("child", doubles_its_input);
      co_await e.open();
      auto run = co_await e.start<std::string>("h", {.id = "r"}, 7);
      co_await weir::sleep(1s);
      co_await p.act(e, "r");
      result = co_await run.result();
    };
    co_await durable::with_engine({.path = path, .segment_bytes = segment_bytes}, body);
  };
  weir::sim::run({.seed = 1}, app);
  return result;
}

/// The names of steps whose answers are among the first records.
std::map<std::string, int> recorded_steps(const std::vector<kept_record>& all, std::size_t count) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> names;
  std::map<std::string, int> done;
  for (std::size_t i = 0; i < count; ++i) {
    const record_head& head = all[i].head;
    const auto key = std::pair(head.run, weir::detail::command_key(head.fiber, head.index));
    const auto type = static_cast<weir::detail::record_type>(head.type);
    if (type == weir::detail::record_type::command)
      names[key] = weir::detail::command_record::read(all[i].payload).name;
    if (type == weir::detail::record_type::answer) ++done[names[key]];
  }
  return done;
}

void cut_everywhere(const play& p) {
  const temporary_directory first;
  const std::string want = live_through(first / "journal", p);
  const std::map<std::string, int> straight = times_run;
  secret_bytes of{};
  const std::vector<kept_record> all = records_of(first / "journal", of);
  ASSERT_GT(all.size(), 2U);
  for (std::size_t count = 1; count <= all.size(); ++count) {
    SCOPED_TRACE("cut behind record " + std::to_string(count) + " of " +
                 std::to_string(all.size()));
    const temporary_directory cut;
    write_cut(cut / "journal", all, count, of);
    EXPECT_EQ(live_through(cut / "journal", p), want);
    const std::map<std::string, int> done = recorded_steps(all, count);
    for (const auto& [name, times] : straight) {
      const auto before = done.find(name);
      if (before == done.end()) continue;
      EXPECT_EQ(times_run[name], times - before->second) << name;
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(boundary, steps_in_a_row) { cut_everywhere({.handler = in_a_row}); }
TEST(boundary, fibers_at_the_same_time) { cut_everywhere({.handler = at_the_same_time}); }
TEST(boundary, limits_and_random_numbers) { cut_everywhere({.handler = limits_and_chance}); }
TEST(boundary, calls_and_sends) { cut_everywhere({.handler = calls_and_sends}); }
TEST(boundary, errors_and_cleanup) { cut_everywhere({.handler = undoes_after_failure}); }
TEST(boundary, awakeables_and_signals) {
  cut_everywhere(
      {.handler = asks_for_an_hour, .act = [](durable::engine& e, const std::string& id) -> task<> {
         const std::string to = published;
         (void)co_await e.resolve(to, "yes");
         (void)co_await e.signal(id, "told", 5);
       }});
}
TEST(boundary, an_absorbed_cancellation) {
  cut_everywhere(
      {.handler = absorbs, .act = [](durable::engine& e, const std::string& id) -> task<> {
         if (times_run["went on"] == 0) (void)e.cancel(id);
         co_return;
       }});
}

}  // namespace
