// SPDX-License-Identifier: MIT
// serde: its errors for malformed or unexpected text, and its limits.
#include "serde_support.hpp"

#include <set>
#include <tuple>

using namespace weir_test;

namespace shop {

struct item {
  std::uint8_t cents = 0;
  std::map<std::string, std::vector<int>> by_name;
};
WEIR_DESCRIBE(item, cents, by_name)
struct cart {
  std::vector<item> lines;
};
WEIR_DESCRIBE(cart, lines)

}  // namespace shop

namespace {

/// One of several small changes to a text.
std::string mutated(std::string text, std::mt19937_64& random) {
  constexpr std::string_view pieces = "[]{},:\"\\0129-+.eEntfu$ \xff\x80";
  const std::size_t at = random() % (text.size() + 1);
  const char piece = pieces[random() % pieces.size()];
  switch (random() % 5) {
    case 0:
      return text.substr(0, at);
    case 1:
      return text.insert(at, 1, piece);
    case 2:
      return text.erase(at, 1 + random() % 4);
    case 3:
      return text.insert(at, text.substr(random() % text.size(), random() % 16));
    default:
      text[random() % text.size()] = piece;
      return text;
  }
}

/// Reads each text and its mutations: a value, or errc::bad_data, which `bad_data` expects.
template <class T>
void fuzz_values(const std::vector<T>& values, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int bad = 0;
  for (const T& value : values)
    for (int i = 0; i < 300; ++i) {
      std::string text = encode(value);
      for (auto n = random() % 3 + 1; n > 0 && !text.empty(); --n) text = mutated(text, random);
      bad += bad_data<T>(text).empty() ? 0 : 1;
    }
  EXPECT_GT(bad, 0);
}

template <class Writes>
void expect_misuse(Writes writes, std::string_view what) {
  const auto error = thrown_by([&] {
    weir::json_writer out;
    writes(out);
    return out.take();
  });
  EXPECT_EQ(code_of(error), errc::invalid_argument);
  EXPECT_TRUE(contains(what_of(error), what)) << what_of(error);
}

}  // namespace

// Promise: texts of errors contain types, names and lengths, never payloads. A name is what the
// code asks for; the keys of a map are data.
TEST(serde_bad_data, errors_say_where_what_was_expected_and_what_was_found) {
  EXPECT_EQ(bad_data<shop::cart>(R"({"lines":[{},{},{},{"cents":"abc"}]})"),
            "bad data at $.lines[3].cents: expected an integer from 0 to 255, found a string of 3 "
            "bytes");
  EXPECT_EQ(bad_data<shop::cart>(R"({"x":1,"lines":[{"by_name":{"":[],"a \"b":[1,[]]}}]})"),
            "bad data at $.lines[0].by_name{entry 1}[1]: expected an integer from -2147483648 to "
            "2147483647, found an array of size 0");
  EXPECT_EQ(bad_data<shop::cart>("[1,2]"),
            "bad data at $: expected an object, found an array of size 2");
}

TEST(serde_bad_data, errors_name_every_kind_of_value_that_was_found) {
  EXPECT_TRUE(contains(bad_data<bool>("null"), "expected true or false, found null"));
  EXPECT_TRUE(contains(bad_data<int>("true"), "found a boolean"));
  EXPECT_TRUE(contains(bad_data<int>("false"), "found a boolean"));
  EXPECT_TRUE(contains(bad_data<int>("1.5"), "found a number of 3 characters"));
  EXPECT_TRUE(
      contains(bad_data<std::string>("{}"), "expected a string, found an object of size 0"));
  EXPECT_TRUE(contains(bad_data<std::vector<int>>("1"),
                       "expected an array, found a number of 1 characters"));
}

TEST(serde_bad_data, errors_never_quote_the_data) {
  using by_name = std::map<std::string, int>;
  using pairs = std::map<std::string, std::map<std::string, bool>>;
  const std::string card = "4111111111111111";
  const std::string quoted = '"' + card + '"';
  for (const std::string& said :
       {bad_data<bool>(card), bad_data<bool>(quoted), bad_data<int>(card), bad_data<int>(quoted),
        bad_data<double>(quoted), bad_data<std::uint8_t>(card), bad_data<std::vector<int>>(quoted),
        bad_data<std::optional<int>>("[" + quoted + "]"), bad_data<std::string>(card),
        bad_data<by_name>("{" + quoted + ":null}"), bad_data<pairs>("{\"a\":{" + quoted + ":1}}"),
        bad_data<std::string>("{\"$base64\":" + quoted + "x\"}"), bad_data<int>(quoted + "x"),
        bad_data<std::variant<int, bool>>("[" + card + ",1]"),
        bad_data<shop::cart>("{\"lines\":[{\"cents\":" + card + "}]}")}) {
    EXPECT_FALSE(contains(said, "4111")) << said;
    EXPECT_TRUE(contains(said, "bad data at")) << said;
  }
}

TEST(serde_bad_data, errors_are_short_however_long_the_data_is) {
  using by_name = std::map<std::string, int>;
  EXPECT_LT(bad_data<int>('"' + std::string(1'000'000, 'x') + '"').size(), 200U);
  EXPECT_LT(bad_data<by_name>("{\"" + std::string(1'000'000, 'x') + "\":null}").size(), 200U);
  EXPECT_LT(bad_data<int>(std::string(100'000, '1')).size(), 200U);
}

TEST(serde_bad_data, every_type_refuses_every_wrong_kind) {
  for (const char* text :
       {"null", "true", "1", "1.5", "\"x\"", "[]", "[1,2,3]", "{}", "{\"a\":1}"}) {
    const std::string_view t = text;
    EXPECT_EQ(bad_data<bool>(t).empty(), t == "true") << t;
    EXPECT_EQ(bad_data<int>(t).empty(), t == "1") << t;
    EXPECT_EQ(bad_data<double>(t).empty(), t == "1" || t == "1.5") << t;
    EXPECT_EQ(bad_data<std::string>(t).empty(), t == "\"x\"") << t;
    EXPECT_EQ(bad_data<std::monostate>(t).empty(), t == "null") << t;
    EXPECT_EQ(bad_data<void>(t).empty(), t == "null") << t;
    EXPECT_EQ(bad_data<std::optional<int>>(t).empty(), t == "null" || t == "1") << t;
    EXPECT_EQ(bad_data<std::optional<std::monostate>>(t).empty(), t == "null") << t;
    EXPECT_EQ(bad_data<std::vector<int>>(t).empty(), t == "[]" || t == "[1,2,3]") << t;
    EXPECT_EQ(bad_data<std::set<int>>(t).empty(), t == "[]" || t == "[1,2,3]") << t;
    EXPECT_EQ((bad_data<std::tuple<int, int, int>>(t).empty()), t == "[1,2,3]") << t;
    EXPECT_NE((bad_data<std::pair<int, int>>(t)), "") << t;
    EXPECT_NE((bad_data<std::variant<int, bool>>(t)), "") << t;
    EXPECT_EQ((bad_data<std::map<int, int>>(t).empty()), t == "[]") << t;
    EXPECT_EQ((bad_data<std::map<std::string, int>>(t).empty()), t == "[]" || t.starts_with("{"))
        << t;
    EXPECT_EQ(bad_data<tree>(t).empty(), t.starts_with("{")) << t;
    EXPECT_EQ(bad_data<std::chrono::seconds>(t).empty(), t == "1") << t;
  }
}

TEST(serde_bad_data, what_is_not_json_is_refused_with_its_place) {
  EXPECT_TRUE(contains(bad_data<int>("1 2"), "bad data at byte 2 of 3: expected JSON"));
  for (const char* text : {"",
                           " ",
                           "nul",
                           "01",
                           "+1",
                           "1.",
                           ".5",
                           "-",
                           "1e",
                           "NaN",
                           "Infinity",
                           "'x'",
                           "\"x",
                           "[1",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{\"a\":1,}",
                           "//x\n1",
                           "1,",
                           "[1]]",
                           "\"\x01\"",
                           "\"\xff\"",
                           "\"\\ud800\"",
                           "\"\\x\"",
                           "\xef\xbb\xbf"
                           "1"})
    EXPECT_TRUE(bad_data<int>(text).starts_with("bad data at byte ")) << text;
  EXPECT_TRUE(bad_data<int>(std::string_view("1\0", 2)).starts_with("bad data at byte 1 "));
}

TEST(serde_bad_data, base64_that_is_not_canonical_is_refused) {
  for (const char* text : {"/", "/w", "/w=", "/x==", "//5=", "====", "/w==/w==", "/-==", "=/w="})
    EXPECT_NE(bad_data<std::string>(std::string(R"({"$base64":")") + text + "\"}"), "") << text;
  EXPECT_NE(bad_data<std::string>(R"({"$base64":"/w==","more":1})"), "");
  EXPECT_NE(bad_data<std::string>(R"({"base64":"/w=="})"), "");
}

TEST(serde_bad_data, mutated_texts_give_a_value_or_an_error) {
  std::mt19937_64 random(4);
  std::vector<tree> trees;
  for (int i = 0; i < 40; ++i) trees.push_back(random_tree(random, 1));
  fuzz_values(trees, 5);
  fuzz_values<std::optional<std::optional<int>>>({{}, std::optional<int>(), std::optional<int>(7)},
                                                 6);
  fuzz_values<std::map<std::string, double>>({{}, {{"a", 0.5}, {"b", -1e300}}, {{"\xff", 1}}}, 7);
  fuzz_values<std::string>({"abc", "\xff\xfe", "\x01\"\\", ""}, 8);
  fuzz_values<std::tuple<bool, std::vector<bool>, std::set<int>>>({{true, {true, false}, {1, 2}}},
                                                                  9);
}

TEST(serde_bad_data, values_of_more_than_64_mib_are_refused_with_their_size) {
  const std::string half(std::size_t{32} << 20, 'x');
  EXPECT_EQ(encode(half).size(), half.size() + 2);
  const auto error = thrown_by([&] { return encode(std::vector<std::string>{half, half}); });
  EXPECT_EQ(code_of(error), errc::too_large);
  EXPECT_TRUE(contains(what_of(error), "it takes 67108871 of 67108864 bytes as JSON; store it"));
}

TEST(serde_bad_data, values_of_exactly_64_mib_are_written_and_read) {
  const std::string just((std::size_t{64} << 20) - 2, 'x');
  EXPECT_TRUE(decode<std::string>(encode(just)) == just);
  EXPECT_EQ(code_of(thrown_by([&] { return encode(just + "x"); })), errc::too_large);
  EXPECT_EQ(code_of(thrown_by([&] { return decode<std::string>('"' + just + "x\""); })),
            errc::too_large);
}

TEST(serde_bad_data, unordered_values_that_are_too_large_are_refused_too) {
  const std::string half(std::size_t{32} << 20, 'x');
  const std::unordered_map<int, std::string> map{{1, half}, {2, half}, {3, ""}};
  EXPECT_EQ(code_of(thrown_by([&] { return encode(map); })), errc::too_large);
}

TEST(serde_bad_data, writers_refuse_calls_that_give_no_json) {
  using writer = weir::json_writer;
  expect_misuse([](writer&) {}, "no value");
  expect_misuse([](writer& w) { w.null(), w.null(); }, "a second value");
  expect_misuse([](writer& w) { w.begin_array(); }, "a begin without its end");
  expect_misuse([](writer& w) { w.end_array(); }, "an end without its begin");
  expect_misuse([](writer& w) { w.begin_array(), w.end_object(); }, "an end without its begin");
  expect_misuse([](writer& w) { w.key("a"); }, "a key where none is due");
  expect_misuse([](writer& w) { w.begin_array(), w.key("a"); }, "a key where none is due");
  expect_misuse([](writer& w) { w.begin_object(), w.null(); }, "without a key");
  expect_misuse([](writer& w) { w.begin_object(), w.key("a"), w.key("b"); }, "where none is due");
  expect_misuse([](writer& w) { w.begin_object(), w.key("a"), w.end_object(); }, "without a value");
  expect_misuse([](writer& w) { w.begin_object(), w.key("\xff"); }, "not UTF-8");
}
