// SPDX-License-Identifier: MIT
// The command line tool and encrypted journals.
#include <string>
#include <vector>

#include "tools/tool_support.hpp"

using namespace durable_test;

namespace {

const std::string tool_key = "0123456789abcdefghijklmnopqrstuv";

task<std::string> keeps_a_secret(int n) {
  const std::string found = co_await weir::step("find", [&] { return "gold" + std::to_string(n); });
  if (n == 2) throw weir::terminal_error("no " + found);
  co_return found;
}

void make_secret_journal(const stage& on) {
  durable::engine_options options = options_for(on);
  options.encryption_key = tool_key;
  auto use = [](durable::engine& e) -> task<> {
    auto first = co_await e.start<std::string>("h", {.id = "r-1"}, 1);
    (void)co_await ending_of(first);
    auto second = co_await e.start<std::string>("h", {.id = "r-2"}, 2);
    (void)co_await ending_of(second);
  };
  sim::run({.seed = 1, .start_time = day0}, with_open_engine(options, as_h(keeps_a_secret), use));
}

std::string key_file(const stage& on, const std::string& content) {
  const std::string name = on.root() + "/key";
  std::ofstream(name, std::ios::binary) << content;
  return name;
}

std::string in_hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace

TEST(tool_key, without_a_key_ids_names_and_times_are_shown_and_payloads_are_not) {
  const stage on;
  make_secret_journal(on);
  const tool_end ls = weir_journal(on, {"ls", on.journal()}, "200");
  EXPECT_EQ(ls.code, 0) << ls.err;
  EXPECT_TRUE(test_support::contains(ls.out, "r-1  h          1  completed  2030-01-01 00:00:00"))
      << ls.out;
  EXPECT_TRUE(test_support::contains(ls.out, "encrypted, 8 B")) << ls.out;
  const tool_end show = weir_journal(on, {"show", on.journal(), "r-1", "--payloads"});
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_TRUE(test_support::contains(show.out, "find")) << show.out;
  EXPECT_FALSE(test_support::contains(show.out, "gold")) << show.out;
  EXPECT_TRUE(test_support::contains(weir_journal(on, {"show", on.journal()}).out, "encrypted\n"));
  EXPECT_EQ(weir_journal(on, {"check", on.journal()}).code, 0);
}

TEST(tool_key, a_key_file_holds_bytes_or_hexadecimal_digits) {
  const stage on;
  make_secret_journal(on);
  for (const std::string& content : {tool_key, in_hex(tool_key), in_hex(tool_key) + "\n"}) {
    const tool_end show = weir_journal(
        on, {"show", on.journal(), "r-1", "--payloads", "--key-file", key_file(on, content)});
    EXPECT_EQ(show.code, 0) << show.err;
    EXPECT_TRUE(test_support::contains(show.out, "\"gold1\"")) << show.out;
  }
  const std::string right = key_file(on, tool_key);
  EXPECT_TRUE(test_support::contains(
      weir_journal(on, {"ls", on.journal(), "--key-file", right}, "200").out, "no gold2"));
}

TEST(tool_key, a_wrong_key_and_a_file_without_a_key_exit_with_2) {
  const stage on;
  make_secret_journal(on);
  const std::string another(32, 'x');
  for (const std::string& content : {another, std::string("short"), std::string(65, 'g')}) {
    const std::string file = key_file(on, content);
    const tool_end end = weir_journal(on, {"ls", on.journal(), "--key-file", file});
    EXPECT_EQ(end.code, 2);
    EXPECT_TRUE(test_support::contains(end.err, content == another ? "is encrypted" : "32 bytes"))
        << end.err;
    EXPECT_FALSE(test_support::contains(end.err, content)) << end.err;
  }
  const tool_end end = weir_journal(on, {"ls", on.journal(), "--key-file", on.root() + "/none"});
  EXPECT_EQ(end.code, 2);
  EXPECT_TRUE(test_support::contains(end.err, "cannot be read")) << end.err;
}

TEST(tool_key, compact_seals_everything_with_the_first_key_file) {
  const stage on;
  make_secret_journal(on);
  const std::string next(32, 'n');
  const std::string old_file = on.root() + "/old";
  std::ofstream(old_file, std::ios::binary) << tool_key;
  const std::string file = key_file(on, next);
  const tool_end alone = weir_journal(on, {"compact", on.journal(), "--key-file", file});
  EXPECT_EQ(alone.code, 2) << alone.out;
  const tool_end both = weir_journal(on, {"compact", on.journal(), "--retention", "100000d",
                                          "--key-file", file, "--key-file", old_file});
  EXPECT_EQ(both.code, 0) << both.err;
  const tool_end show =
      weir_journal(on, {"show", on.journal(), "r-1", "--payloads", "--key-file", file});
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_TRUE(test_support::contains(show.out, "gold1")) << show.out;
  EXPECT_EQ(weir_journal(on, {"ls", on.journal(), "--key-file", old_file}).code, 2);
  const tool_end keyless = weir_journal(on, {"ls", on.journal()}, "200");
  EXPECT_EQ(keyless.code, 0) << keyless.err;
  EXPECT_TRUE(test_support::contains(keyless.out, "encrypted, 8 B")) << keyless.out;
}
