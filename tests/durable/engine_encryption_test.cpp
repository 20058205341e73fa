// SPDX-License-Identifier: MIT
// Engines with a key: runs survive as without one, and no payload can be found in the files.
#include <fstream>
#include <iterator>

#include "durable/support/stage.hpp"

using namespace durable_test;

namespace {

const std::string present_key(32, 'p');
const std::string former_key(32, 'f');
/// Part of every payload, and of nothing else.
const std::string marker = "PAYLOAD-4711";

struct keys_of_engine {
  std::string_view present;
  std::vector<std::string_view> old{};
};

void keyed_session(const stage& on, const keys_of_engine& keys, installer setup, user use,
                   weir::duration later = 0ns) {
  durable::engine_options options = options_for(on);
  options.encryption_key = keys.present;
  options.old_keys = keys.old;
  sim::run({.seed = 1, .start_time = day0 + later},
           with_open_engine(options, std::move(setup), std::move(use)));
}

/// All bytes of all files of the journal.
std::string all_bytes(const stage& on) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(on.journal())) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

/// A value, an error, a signal, an awakeable, a promise, a call, a send, a blob: all with payloads.
task<std::string> keeps_secrets(std::string input) {
  const std::string a = co_await weir::step("charge", [&] { return input + " " + marker; });
  try {
    co_await weir::step("refused", [&] { throw weir::terminal_error("no " + marker); });
  } catch (const weir::terminal_error&) {
  }
  int left = 1;
  weir::retry_options twice;
  twice.attempts = 2;
  co_await weir::step("flaky",
                      [&] {
                        if (left-- > 0) throw std::runtime_error("once " + marker);
                      },
                      {.retry = twice});
  const std::string large =
      co_await weir::step("large", [&] { return std::string(100'000, 'L') + marker; });
  const std::string called = co_await weir::call<std::string>("echo", marker, {.id = "callee"});
  (void)co_await weir::send("echo", marker, {.id = "sent"});
  auto p = weir::promise<std::string>("agreed");
  (void)co_await p.resolve(marker);
  auto answer = weir::awakeable<std::string>("approval");
  co_await weir::step("ask", [&] { note("id " + std::string(answer.id())); });
  const std::string b = co_await answer.wait();
  const std::string c = co_await weir::signal<std::string>("go").wait();
  co_return a + b + c + called + std::to_string(large.size());
}

task<std::string> echo(std::string text) { co_return text; }

task<std::string> refuses(std::string) { throw weir::terminal_error("refused " + marker); }

void secret_handlers(durable::engine& e) {
  e.add("keeps", keeps_secrets);
  e.add("echo", echo);
  e.add("refuses", refuses);
}

task<> begin_secret_runs(durable::engine& e) {
  (void)co_await e.start<std::string>("keeps", {.id = "order-17"}, marker);
  auto refused = co_await e.start<std::string>("refuses", {.id = "order-18"}, marker);
  EXPECT_TRUE(co_await code_after([&] { return refused.result(); }));
  const std::string id = co_await last_noted("id ");
  EXPECT_TRUE(co_await e.resolve(id, marker));
}

task<> end_secret_runs(durable::engine& e) {
  (void)co_await e.signal("order-17", "go", marker);
  auto run = co_await e.start<std::string>("keeps", {.id = "order-17"}, marker);
  EXPECT_EQ(co_await run.result(),
            marker + " " + marker + marker + marker + marker + std::to_string(100'000 + 12));
  auto refused = co_await e.start<std::string>("refuses", {.id = "order-18"}, marker);
  EXPECT_EQ(co_await ending_of(refused), "failed: refused " + marker);
}

errc opening(const stage& on, const keys_of_engine& keys) {
  std::error_code code;
  durable::engine_options options = options_for(on);
  options.encryption_key = keys.present;
  options.old_keys = keys.old;
  auto body = [&](durable::engine& e) -> task<> {
    e.add("echo", echo);
    code = co_await code_after([&] { return e.open(); });
  };
  auto app = [&]() -> task<> { co_await durable::with_engine(options, body); };
  sim::run({.seed = 1, .start_time = day0}, app());
  return static_cast<errc>(code.value());
}

}  // namespace

TEST(durable_encryption, no_payload_is_in_any_file_and_names_and_ids_are) {
  const stage on;
  keyed_session(on, {present_key}, secret_handlers, begin_secret_runs);
  keyed_session(on, {present_key}, secret_handlers, end_secret_runs, 1h);
  const std::string all = all_bytes(on);
  EXPECT_FALSE(test_support::contains(all, marker));
  EXPECT_FALSE(test_support::contains(all, "LLLL"));
  for (const char* name :
       {"order-17", "order-18", "keeps", "callee", "echo", "charge", "large", "approval", "go"})
    EXPECT_TRUE(test_support::contains(all, name)) << name;
}

TEST(durable_encryption, without_a_key_the_same_runs_leave_their_payloads_readable) {
  const stage on;
  keyed_session(on, {}, secret_handlers, begin_secret_runs);
  EXPECT_TRUE(test_support::contains(all_bytes(on), marker));
}

TEST(durable_encryption, a_run_goes_on_under_another_key_and_the_old_one_reads_its_past) {
  const stage on;
  keyed_session(on, {former_key}, secret_handlers, begin_secret_runs);
  keyed_session(on, {present_key, {former_key}}, secret_handlers, end_secret_runs, 1h);
  EXPECT_FALSE(test_support::contains(all_bytes(on), marker));
  EXPECT_EQ(opening(on, {present_key}), errc::wrong_key);
  EXPECT_EQ(opening(on, {present_key, {former_key}}), errc{});
}

TEST(durable_encryption, a_run_that_began_without_a_key_goes_on_with_one) {
  const stage on;
  keyed_session(on, {}, secret_handlers, begin_secret_runs);
  keyed_session(on, {present_key}, secret_handlers, end_secret_runs, 1h);
  EXPECT_EQ(opening(on, {}), errc::wrong_key);
  EXPECT_EQ(opening(on, {present_key}), errc{});
}

TEST(durable_encryption, a_missing_or_wrong_key_is_refused_and_changes_no_file) {
  const stage on;
  keyed_session(on, {present_key}, secret_handlers, begin_secret_runs);
  const std::string before = all_bytes(on);
  EXPECT_EQ(opening(on, {}), errc::wrong_key);
  EXPECT_EQ(opening(on, {former_key}), errc::wrong_key);
  EXPECT_EQ(all_bytes(on), before);
  keyed_session(on, {present_key}, secret_handlers, end_secret_runs, 1h);
}

TEST(durable_encryption, a_key_of_another_length_is_refused_by_the_engine) {
  const stage on;
  auto with_key = [&](std::string_view key) -> task<> {
    durable::engine_options options = options_for(on);
    options.encryption_key = key;
    auto body = [](durable::engine&) -> task<> { co_return; };
    const auto code = co_await code_after([&] { return durable::with_engine(options, body); });
    EXPECT_EQ(code, errc::invalid_argument);
  };
  sim::run({.seed = 1}, with_key("too short"));
  sim::run({.seed = 1}, with_key(std::string(64, 'x')));
}

TEST(durable_encryption, the_engine_keeps_a_copy_of_the_key) {
  const stage on;
  std::string key = present_key;
  auto body = [&](durable::engine& e) -> task<> {
    key.assign(32, '\0');
    secret_handlers(e);
    co_await e.open();
    auto run = co_await e.start<std::string>("echo", {.id = "r"}, marker);
    EXPECT_EQ(co_await run.result(), marker);
  };
  auto app = [&]() -> task<> {
    durable::engine_options options = options_for(on);
    options.encryption_key = key;
    co_await durable::with_engine(options, body);
  };
  sim::run({.seed = 1, .start_time = day0}, app());
  EXPECT_EQ(opening(on, {present_key}), errc{});
}

TEST(durable_encryption, a_call_with_another_input_is_still_noticed) {
  const stage on;
  auto sends = [](std::string text) {
    return [text](std::string) -> task<int> {
      (void)co_await weir::send("echo", text, {.id = "s"});
      co_return co_await weir::signal<int>("never").wait();
    };
  };
  auto begins = [](durable::engine& e) -> task<> {
    (void)co_await e.start<int>("h", {.id = "r"}, marker);
    co_await weir::sleep(1s);
  };
  auto blocked = [](durable::engine& e) -> task<> {
    co_await weir::sleep(1s);
    EXPECT_EQ(e.get("r")->state, durable::run_state::blocked);
  };
  auto with_echo = [&](std::string text) {
    return [h = sends(std::move(text))](durable::engine& e) {
      e.add("h", h);
      e.add("echo", echo);
    };
  };
  keyed_session(on, {present_key}, with_echo("one"), begins);
  keyed_session(on, {present_key}, with_echo("two"), blocked, 1h);
}
