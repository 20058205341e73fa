// SPDX-License-Identifier: MIT
// The promises of verify and replay: every run, ended or not, is replayed against the present code
// on the calling thread; the first difference is named with both sides and the line; nothing
// happens and nothing is written.
#include <map>
#include <sstream>
#include <thread>

#include "durable/journal_reader.hpp"
#include "durable/run_export.hpp"
#include "durable/support/crashes.hpp"

using namespace durable_test;

namespace {

std::thread::id replayed_on;

task<std::string> story(int n) {
  replayed_on = std::this_thread::get_id();
  (void)co_await give("one", 1);
  (void)co_await give("two", 2);
  co_await weir::sleep(1s);
  (void)co_await weir::send("child", n);
  auto a = weir::awakeable<int>("a");
  co_await weir::step("publish", [&] { note("id " + std::string(a.id())); });
  co_return row(n, co_await a.wait());
}

task<std::string> story_changed(int n) {
  (void)co_await give("one", 1);
  (void)co_await give("zwei", 2);
  co_await weir::sleep(1s);
  (void)co_await weir::send("child", n);
  co_return row(n);
}

/// Two ended runs, and one that waits for its answer.
void tell_stories(const stage& on) {
  whole_life([&] {
    session(on, with_child(story, gives_its_input), [](durable::engine& e) -> task<> {
      for (int i = 0; i < 3; ++i) {
        const std::string id = "r" + std::to_string(i);
        auto run = co_await e.start<std::string>("h", {.id = id}, i);
        const std::string question = co_await last_noted("id ", static_cast<std::size_t>(i) + 1);
        if (i == 2) break;
        (void)co_await e.resolve(question, 40);
        (void)co_await run.result();
      }
      co_await weir::sleep(1min);
    });
  });
}

struct verified {
  bool ok = false;
  std::string text{};
  durable::replay_report report{};
};

/// Of all runs, or of one.
verified verify_with(const stage& on, const installer& setup, const std::string& id = {}) {
  verified out;
  auto body = [&](durable::engine& e) -> task<> {
    setup(e);
    if (id.empty()) {
      out.report = co_await e.verify();
    } else {
      out.report = co_await e.replay(id);
    }
    std::ostringstream text;
    text << out.report;
    out.ok = out.report.ok();
    out.text = text.str();
  };
  const durable::engine_options options = options_for(on);
  sim::run({.seed = 1, .start_time = day0 + 1000h}, durable::with_engine(options, body));
  return out;
}

template <class H>
verified verify_h(const stage& on, H handler) {
  return verify_with(on, as_h(handler));
}

std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    all[entry.path().string()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return all;
}

bool says(const std::string& text, const lines& parts) {
  for (const std::string& part : parts)
    if (!test_support::contains(text, part)) return false;
  return true;
}

/// As `weir journal export` does.
class export_visitor final : public weir::detail::journal_visitor {
 public:
  explicit export_visitor(std::uint64_t run) : run_(run) {}
  void restart() override { records.clear(); }
  void see(const weir::detail::record_head& head, std::string_view payload, std::uint64_t,
           weir::detail::record_place) override {
    if (head.run == run_) records.push_back({head, std::string(payload)});
  }
  std::vector<weir::detail::exported_record> records;

 private:
  std::uint64_t run_;
};

std::string export_run(const stage& on, std::uint64_t number) {
  weir::detail::journal_reader reader(weir::real_disk(), on.journal());
  export_visitor found(number);
  reader.read(found);
  const std::string path = on.root() + "/run";
  std::ofstream(path, std::ios::binary)
      << weir::detail::write_export(found.records, reader.view().secret);
  return path;
}

}  // namespace

TEST(durable_verify, is_ok_with_the_same_code_and_changes_nothing) {
  const stage on;
  tell_stories(on);
  const lines before = ledger();
  const auto files = files_of(on.journal());
  replayed_on = {};
  const verified v = verify_with(on, with_child(story, gives_its_input));
  EXPECT_TRUE(v.ok) << v.text;
  EXPECT_EQ(v.report.runs, 6u);
  EXPECT_EQ(v.text, "6 runs replayed, no difference");
  EXPECT_EQ(replayed_on, std::this_thread::get_id());
  EXPECT_EQ(ledger(), before);
  EXPECT_EQ(files_of(on.journal()), files);
  whole_life([&] {  // and the run goes on afterwards
    session(on, with_child(story, gives_its_input), [](durable::engine& e) -> task<> {
      auto run = co_await e.start<std::string>("h", {.id = "r2"}, 1);
      (void)co_await e.resolve(noted("id ").back(), 1);
      EXPECT_EQ(co_await run.result(), "2,1");
    });
  });
}

TEST(durable_verify, names_the_first_difference_of_each_run_with_both_sides_and_the_line) {
  const stage on;
  tell_stories(on);
  const lines before = ledger();
  const verified v = verify_with(on, with_child(story_changed, gives_its_input));
  EXPECT_FALSE(v.ok);
  ASSERT_EQ(v.report.differences.size(), 3u) << v.text;
  EXPECT_TRUE(says(v.text, {"'r0'", "'r1'", "'r2'", "step 'two'", "step 'zwei'",
                            "crashes.hpp:", "6 runs replayed, 3 with a difference"}))
      << v.text;
  EXPECT_EQ(ledger(), before);
}

TEST(durable_verify, finds_missing_handlers_other_results_and_other_ends) {
  const stage on;
  auto gives = [](int n) -> task<std::string> { co_return row(n, co_await give("a", 1)); };
  session_of(on, gives, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    (void)co_await run.result();
  });
  EXPECT_TRUE(verify_h(on, gives).ok);
  const verified missing = verify_with(on, [](durable::engine&) {});
  EXPECT_TRUE(says(missing.text, {"no handler 'h' of version 1"})) << missing.text;
  const verified other =
      verify_h(on, [](int n) -> task<std::string> { co_return row(n, co_await give("a", 1), 7); });
  EXPECT_TRUE(says(other.text, {"the result had", "crashes.hpp:"})) << other.text;
  const verified more = verify_h(on, [](int) -> task<std::string> {
    co_return row(co_await give("a", 1), co_await give("more", 1));
  });
  EXPECT_TRUE(says(more.text, {"has ended", "step 'more'", "crashes.hpp"})) << more.text;
  const verified less = verify_h(on, [](int) -> task<std::string> { co_return "less"; });
  EXPECT_TRUE(says(less.text, {"step 'a'", "engine_verify_test.cpp"})) << less.text;
  const verified fails = verify_h(on, [](int) -> task<std::string> {
    (void)co_await give("a", 1);
    throw std::runtime_error("now it fails");
  });
  EXPECT_TRUE(says(fails.text, {"completed", "failed"})) << fails.text;
  const verified goes_on = verify_h(on, [](int) -> task<std::string> {
    (void)co_await give("a", 1);
    weir::event never;
    co_await never.wait();
    co_return "";
  });
  EXPECT_TRUE(says(goes_on.text, {"has ended", "engine_verify_test.cpp"})) << goes_on.text;
  const verified input = verify_h(on, [](std::string) -> task<std::string> { co_return ""; });
  EXPECT_TRUE(says(input.text, {"the input of the handler", "stage.hpp:"})) << input.text;
}

TEST(durable_verify, accepts_a_patch_in_runs_that_had_ended_before) {
  const stage on;
  auto before = [](int) -> task<std::string> { co_return row(co_await give("a", 1)); };
  auto after = [](int) -> task<std::string> {
    const int a = co_await give("a", 1);
    int extra = 0;
    if (weir::patch("extra")) extra = co_await give("extra", 1);
    co_return extra == 0 ? row(a) : row(a, extra);
  };
  EXPECT_EQ(ending(on, before), "1");
  const verified v = verify_h(on, after);
  EXPECT_TRUE(v.ok) << v.text;
}

TEST(durable_verify, replays_forks_restarts_skipped_and_cancelled_runs) {
  const stage on;
  auto handler = [](int n) -> task<std::string> {
    const int a = co_await give("a", n);
    co_await weir::sleep(1s);
    co_return row(a, co_await give("b", 2));
  };
  session_of(on, handler, [](durable::engine& e) -> task<> {
    auto run = co_await e.start<std::string>("h", {.id = "r"}, 1);
    auto gone = co_await e.start<std::string>("h", {.id = "gone"}, 1);
    co_await weir::sleep(1min);
    (void)co_await e.fork("r", 1, {.id = "f"});
    co_await e.restart("gone");
    (void)co_await run.result();
    (void)co_await gone.result();
    auto cancelled = co_await e.start<std::string>("h", {.id = "c"}, 1);
    co_await weir::sleep(1min);
    cancelled.cancel();
    (void)co_await ending_of(cancelled);
  });
  const verified v = verify_h(on, handler);
  EXPECT_TRUE(v.ok) << v.text;
  EXPECT_EQ(v.report.runs, 4u);
}

TEST(durable_verify, of_one_run_or_of_a_journal_in_use_or_of_none) {
  const stage on;
  tell_stories(on);
  const installer setup = with_child(story, gives_its_input);
  EXPECT_EQ(verify_with(on, setup, "r1").text, "1 run replayed, no difference");
  EXPECT_FALSE(verify_with(on, with_child(story_changed, gives_its_input), "r2").ok);
  const auto error = test_support::thrown_by([&] { return verify_with(on, setup, "nobody"); });
  EXPECT_EQ(test_support::code_of(error), errc::invalid_argument);
  session(on, setup, [&](durable::engine& e) -> task<> {
    const auto again = co_await test_support::attempt([&] { return e.verify(); });
    EXPECT_EQ(test_support::code_of(again), errc::already_open);
    auto body = [&](durable::engine& other) -> task<> {
      setup(other);
      EXPECT_TRUE((co_await other.verify()).ok());
    };
    co_await durable::with_engine(options_for(on), body);
  });
  const stage empty;
  const auto none = test_support::thrown_by([&] { return verify_with(empty, setup); });
  EXPECT_EQ(test_support::code_of(none), errc::invalid_argument);
}

TEST(durable_replay, takes_an_exported_run) {
  const stage on;
  tell_stories(on);
  const lines before = ledger();
  for (const bool changed : {false, true}) {
    for (const std::uint64_t number : {1u, 5u}) {  // ended, and waiting
      const std::string file = export_run(on, number);
      durable::replay_report report;
      auto app = [&]() -> task<> {
        if (changed) {
          report = co_await durable::replay(file, story_changed);
        } else {
          report = co_await durable::replay(file, story);
        }
      };
      sim::run({.seed = 1}, app);
      std::ostringstream text;
      text << report;
      EXPECT_EQ(report.ok(), !changed) << text.str();
      EXPECT_EQ(report.runs, 1u);
    }
  }
  EXPECT_EQ(ledger(), before);
}

TEST(durable_replay, refuses_a_file_that_is_something_else) {
  const stage on;
  const std::string path = on.root() + "/file";
  std::ofstream(path) << "a text that is long enough for a header, but none";
  auto app = [&]() -> task<> { (void)co_await durable::replay(path, story); };
  const auto error = test_support::thrown_by([&] { sim::run({.seed = 1}, app); });
  EXPECT_EQ(test_support::code_of(error), errc::bad_data);
}
