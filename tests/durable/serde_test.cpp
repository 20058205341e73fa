// SPDX-License-Identifier: MIT
// serde: what every type looks like as JSON, and that it reads back to the same value.
#include "serde_support.hpp"

#include <array>
#include <bit>
#include <cfloat>
#include <chrono>
#include <cmath>
#include <deque>
#include <limits>
#include <list>
#include <set>
#include <tuple>
#include <unordered_set>

#include <boost/describe/class.hpp>

#include <weir/interop/describe.hpp>

using namespace weir_test;

namespace {

/// Expects `text` for `value`, and an equal value for the text.
template <class T>
void expect_form(const T& value, std::string_view text) {
  EXPECT_EQ(encode(value), text);
  EXPECT_TRUE(decode<T>(text) == value) << text;
}

template <class T>
void expect_limits() {
  using limits = std::numeric_limits<T>;
  expect_form(limits::min(), std::to_string(limits::min()));
  expect_form(limits::max(), std::to_string(limits::max()));
  expect_form(T{0}, "0");
  const std::string above = std::to_string(limits::max()) + "0";
  EXPECT_TRUE(contains(bad_data<T>(above), "expected an integer from " +
                                               std::to_string(limits::min()) + " to " +
                                               std::to_string(limits::max()) + ", found"));
  EXPECT_NE(bad_data<T>("-" + above), "");
  EXPECT_NE(bad_data<T>("1.0"), "");
  EXPECT_NE(bad_data<T>("1e0"), "");
  EXPECT_NE(bad_data<T>("\"1\""), "");
}

template <class Float, class Bits>
void expect_exact(Bits bits) {
  const auto value = std::bit_cast<Float>(bits);
  const std::string text = encode(value);
  const auto back = decode<Float>(text);
  if (std::isnan(value))
    EXPECT_TRUE(std::isnan(back)) << text;
  else
    EXPECT_EQ(std::bit_cast<Bits>(back), bits) << text;
}

enum class colour : std::int8_t { red = -1, green = 7 };
enum plain_enum { none, some = 300 };

struct hidden {
  int weir = 0;
  std::vector<hidden> visitor;
  bool operator==(const hidden&) const = default;
};
WEIR_DESCRIBE(hidden, weir, visitor)

}  // namespace

struct in_global_namespace {
  int n = 0;
  bool operator==(const in_global_namespace&) const = default;
};
WEIR_DESCRIBE(in_global_namespace, n);

namespace shop {

struct line {
  std::string sku;
  std::uint8_t cents = 5;
  bool operator==(const line&) const = default;
};
WEIR_DESCRIBE(line, sku, cents)

struct order {
  std::int64_t id = -1;
  std::vector<line> lines;
  std::optional<line> gift;
  in_global_namespace global;
  bool operator==(const order&) const = default;
};
WEIR_DESCRIBE(order, id, lines, gift, global)

struct nothing {
  bool operator==(const nothing&) const = default;
};
WEIR_DESCRIBE(nothing)

struct outer {
  struct inner {
    int n = 0;
  };
  inner in;
};
WEIR_DESCRIBE(outer::inner, n)
WEIR_DESCRIBE(outer, in)

struct special_order : order {
  int discount = 0;
};
WEIR_DESCRIBE(special_order, id, lines, discount)

struct handle {
  std::unique_ptr<int> owned;
  std::vector<std::unique_ptr<int>> more;
  handle() = default;
  handle(handle&&) = default;
  handle& operator=(handle&&) = default;
};
WEIR_DESCRIBE(handle, owned, more)

/// Without a default constructor, and not assignable.
class token {
 public:
  explicit token(int n) : n_(n) {}
  int n() const { return n_; }
  auto operator<=>(const token&) const = default;

 private:
  const int n_;
};

/// Written as null if it is zero.
struct maybe_zero {
  int n = 0;
  bool operator==(const maybe_zero&) const = default;
};

struct wide {
  int a0 = 0, a1 = 1, a2 = 2, a3 = 3, a4 = 4, a5 = 5, a6 = 6, a7 = 7, a8 = 8, a9 = 9;
  int b0 = 0, b1 = 1, b2 = 2, b3 = 3, b4 = 4, b5 = 5, b6 = 6, b7 = 7, b8 = 8, b9 = 9;
  int c0 = 0, c1 = 1, c2 = 2, c3 = 3, c4 = 4, c5 = 5, c6 = 6, c7 = 7, c8 = 8, c9 = 9;
  int d0 = 0, d1 = 1, d2 = 2, d3 = 3, d4 = 4, d5 = 5, d6 = 6, d7 = 7, d8 = 8, d9 = 9;
  int e0 = 0, e1 = 1, e2 = 2, e3 = 3, e4 = 4, e5 = 5, e6 = 6, e7 = 7, e8 = 8, e9 = 9;
  int f0 = 0, f1 = 1, f2 = 2, f3 = 3, f4 = 4, f5 = 5, f6 = 6, f7 = 7, f8 = 8, f9 = 9;
  int g0 = 0, g1 = 1, g2 = 2, g3 = 3;
  bool operator==(const wide&) const = default;
};
WEIR_DESCRIBE(wide, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6, b7, b8, b9,
              c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7, d8, d9, e0,
              e1, e2, e3, e4, e5, e6, e7, e8, e9, f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, g0, g1,
              g2, g3);

struct priced {
  int cents = 0;
  bool operator==(const priced&) const = default;
};
BOOST_DESCRIBE_STRUCT(priced, (), (cents))

class sold : public priced {
 public:
  sold() = default;
  explicit sold(std::string to) : buyer_(std::move(to)) {}
  bool operator==(const sold&) const = default;

 private:
  std::string buyer_;
  BOOST_DESCRIBE_CLASS(sold, (priced), (), (), (buyer_))
};

struct both {
  int a = 1;
  int b = 2;
  bool operator==(const both&) const = default;
};
BOOST_DESCRIBE_STRUCT(both, (), (a, b))
WEIR_DESCRIBE(both, b)

}  // namespace shop

template <>
struct weir::serde<shop::token> {
  static constexpr bool never_null = true;
  static void write(weir::json_writer& out, const shop::token& t) { out.number(t.n()); }
  static shop::token read(const weir::json_value& in) {
    const int n = in.as_integer<int>();
    if (n < 0) in.fail("a token");
    return shop::token(n);
  }
};

template <>
struct weir::serde<shop::maybe_zero> {
  static void write(weir::json_writer& out, const shop::maybe_zero& m) {
    if (m.n == 0)
      out.null();
    else
      out.number(m.n);
  }
  static shop::maybe_zero read(const weir::json_value& in) {
    return in.is_null() ? shop::maybe_zero{} : shop::maybe_zero{in.as_integer<int>()};
  }
};

TEST(serde, text_is_written_and_read_by_two_functions) {
  const std::vector<int> numbers{1, 2, 3};
  EXPECT_EQ(weir::to_json(numbers), "[1,2,3]");
  EXPECT_EQ(weir::from_json<std::vector<int>>(" [1, 2, 3] "), numbers);
  try {
    (void)weir::from_json<bool>("1");
    FAIL() << "1 is no bool";
  } catch (const weir::error& e) {
    EXPECT_EQ(e.code(), weir::errc::bad_data);
  }
}

TEST(serde, truth_is_true_or_false) {
  expect_form(true, "true");
  expect_form(false, "false");
}

TEST(serde, void_and_monostate_are_null) {
  EXPECT_EQ(encode<void>(), "null");
  decode<void>("null");
  EXPECT_TRUE(contains(bad_data<void>("1"), "expected null, found a number of 1 characters"));
  expect_form(std::monostate(), "null");
}

TEST(serde, integers_are_exact_up_to_their_limits_and_refused_beyond) {
  expect_limits<signed char>();
  expect_limits<unsigned char>();
  expect_limits<short>();
  expect_limits<unsigned short>();
  expect_limits<int>();
  expect_limits<unsigned>();
  expect_limits<long>();
  expect_limits<unsigned long>();
  expect_limits<long long>();
  expect_limits<unsigned long long>();
  expect_form('a', "97");
  expect_form(u8'a', "97");
}

TEST(serde, enums_are_numbers_in_the_range_of_their_type) {
  expect_form(colour::red, "-1");
  expect_form(colour::green, "7");
  expect_form(some, "300");
  expect_form(std::byte{255}, "255");
  EXPECT_NE(bad_data<colour>("128"), "");
}

TEST(serde, doubles_are_the_shortest_text_that_is_exact) {
  expect_form(0.1, "0.1");
  expect_form(1.0, "1");
  expect_form(1e300, "1e+300");
  expect_form(DBL_MAX, "1.7976931348623157e+308");
  expect_form(5e-324, "5e-324");
  expect_form(0.1F, "0.1");
  EXPECT_EQ(encode(-0.0), "-0");
  EXPECT_TRUE(std::signbit(decode<double>("-0")));
}

TEST(serde, doubles_of_any_bit_pattern_are_exact) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    expect_exact<double>(bits);
    expect_exact<double>(bits & 0x800fffffffffffff);  // denormal
    expect_exact<float>(static_cast<std::uint32_t>(bits));
    expect_exact<float>(static_cast<std::uint32_t>(bits) & 0x807fffffU);
  }
}

TEST(serde, numbers_that_json_lacks_are_tagged) {
  expect_form(std::numeric_limits<double>::infinity(), R"({"$float":"inf"})");
  expect_form(-std::numeric_limits<float>::infinity(), R"({"$float":"-inf"})");
  EXPECT_EQ(encode(std::nan("")), R"({"$float":"nan"})");
  EXPECT_TRUE(std::isnan(decode<double>(R"({"$float":"nan"})")));
  EXPECT_NE(bad_data<double>(R"({"$float":"big"})"), "");
  EXPECT_NE(bad_data<double>(R"({"$float":1})"), "");
  EXPECT_NE(bad_data<double>("1e999"), "");
  EXPECT_NE(bad_data<float>("1e39"), "");
}

TEST(serde, doubles_may_be_written_by_others_in_any_form_of_json) {
  EXPECT_EQ(decode<double>("100000000000000000000000"), 1e23);
  EXPECT_EQ(decode<double>(" 1.50E+2 "), 150.0);
  EXPECT_EQ(decode<double>("12345678901234567890"), 12345678901234567890.0);
}

TEST(serde, strings_in_utf8_are_strings_and_others_base64) {
  expect_form(std::string(), R"("")");
  expect_form(std::string("a\"b\\c/\b\f\n\r\t\x01\x7f"),
              "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\x7f\"");
  expect_form(std::string("\0x", 2), R"("\u0000x")");
  expect_form(std::string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
              "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  expect_form(std::string("\xff"), R"({"$base64":"/w=="})");
  expect_form(std::string("\xff\xfe"), R"({"$base64":"//4="})");
  expect_form(std::string("\xff\xfe\xfd"), R"({"$base64":"//79"})");
  expect_form(std::string(R"({"$base64":"/w=="})"), R"("{\"$base64\":\"/w==\"}")");
}

TEST(serde, what_is_almost_utf8_is_base64) {
  for (const char* bytes :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98"}) {
    const std::string text = encode(std::string(bytes));
    EXPECT_TRUE(contains(text, "$base64")) << text;
    EXPECT_EQ(decode<std::string>(text), bytes);
  }
}

TEST(serde, strings_of_any_bytes_read_back) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = random_bytes(random, 12);
    if (i % 2 == 0)
      for (char& c : bytes) c = static_cast<char>(c & 0x7f);
    EXPECT_EQ(decode<std::string>(encode(bytes)), bytes);
  }
}

TEST(serde, every_character_of_unicode_is_a_plain_string) {
  for (std::uint32_t c = 0x80; c < 0x110000; c += c < 0x1000 ? 1 : 37) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string bytes;
    if (c >= 0x10000) bytes += static_cast<char>(0xf0 | c >> 18);
    if (c >= 0x10000) bytes += static_cast<char>(0x80 | (c >> 12 & 63));
    if (c >= 0x800 && c < 0x10000) bytes += static_cast<char>(0xe0 | c >> 12);
    if (c >= 0x800) bytes += static_cast<char>(0x80 | (c >> 6 & 63));
    if (c < 0x800) bytes += static_cast<char>(0xc0 | c >> 6);
    bytes += static_cast<char>(0x80 | (c & 63));
    EXPECT_EQ(encode(bytes), '"' + bytes + '"') << c;
    EXPECT_EQ(decode<std::string>('"' + bytes + '"'), bytes) << c;
  }
}

TEST(serde, sequences_are_arrays) {
  expect_form(std::vector<int>{}, "[]");
  expect_form(std::vector<int>{1, 2, 3}, "[1,2,3]");
  expect_form(std::vector<bool>{true, false}, "[true,false]");
  expect_form(std::deque<std::string>{"a", ""}, R"(["a",""])");
  expect_form(std::list<double>{0.5}, "[0.5]");
  expect_form(std::vector<std::vector<int>>{{}, {1}}, "[[],[1]]");
}

TEST(serde, arrays_pairs_and_tuples_are_arrays_of_their_size) {
  expect_form(std::array<int, 3>{1, 2, 3}, "[1,2,3]");
  expect_form(std::array<int, 0>{}, "[]");
  expect_form(std::array<shop::token, 2>{shop::token(1), shop::token(2)}, "[1,2]");
  expect_form(std::pair<int, std::string>(1, "x"), R"([1,"x"])");
  expect_form(std::tuple<>(), "[]");
  expect_form(std::tuple<bool, int, std::string>(true, 2, "x"), R"([true,2,"x"])");
  expect_form(std::tuple<shop::token>(shop::token(3)), "[3]");
  expect_form(std::tuple<std::tuple<int>>(std::tuple<int>(3)), "[[3]]");
  expect_form(std::tuple<std::optional<std::tuple<>>>(), "[null]");
  EXPECT_TRUE(contains(bad_data<decltype(std::array<int, 3>{})>("[1,2]"),
                       "expected an array of size 3, found an array of size 2"));
}

TEST(serde, optionals_are_null_or_the_value) {
  expect_form(std::optional<int>(), "null");
  expect_form(std::optional<int>(3), "3");
  expect_form(std::optional<std::vector<int>>(std::in_place), "[]");
  expect_form(std::optional<shop::token>(shop::token(3)), "3");
}

TEST(serde, optionals_of_what_may_be_null_are_in_an_array) {
  using twice = std::optional<std::optional<int>>;
  expect_form(twice(), "null");
  expect_form(twice(std::in_place), "[null]");
  expect_form(twice(std::optional<int>(3)), "[3]");
  using thrice = std::optional<twice>;
  expect_form(thrice(), "null");
  expect_form(thrice(twice()), "[null]");
  expect_form(thrice(twice(std::in_place)), "[[null]]");
  expect_form(thrice(twice(std::optional<int>(3))), "[[3]]");
  expect_form(std::optional<std::monostate>(std::in_place), "[null]");
  expect_form(std::optional<shop::maybe_zero>(shop::maybe_zero{}), "[null]");
  expect_form(std::optional<shop::maybe_zero>(shop::maybe_zero{2}), "[2]");
}

TEST(serde, unique_pointers_are_null_or_the_value) {
  using pointer = std::unique_ptr<int>;
  EXPECT_EQ(encode(pointer()), "null");
  EXPECT_EQ(decode<pointer>("null"), nullptr);
  EXPECT_EQ(encode(std::make_unique<int>(3)), "3");
  EXPECT_EQ(*decode<pointer>("3"), 3);
  EXPECT_EQ(encode(std::make_unique<pointer>()), "[null]");
  EXPECT_EQ(*decode<std::unique_ptr<pointer>>("[null]"), nullptr);
}

TEST(serde, maps_with_string_keys_are_objects) {
  expect_form(std::map<std::string, int>{}, "{}");
  expect_form(std::map<std::string, int>{{"b", 1}, {"a", 2}, {"", 3}}, R"({"":3,"a":2,"b":1})");
  expect_form(std::unordered_map<std::string, int>{{"b", 1}, {"a", 2}}, R"({"a":2,"b":1})");
}

TEST(serde, maps_with_a_key_that_is_not_utf8_are_pairs) {
  expect_form(std::map<std::string, int>{{"a", 1}, {"\xff", 2}},
              R"([["a",1],[{"$base64":"/w=="},2]])");
}

TEST(serde, maps_with_other_keys_are_pairs) {
  expect_form(std::map<int, int>{}, "[]");
  expect_form(std::map<int, std::string>{{10, "b"}, {9, "a"}}, R"([[9,"a"],[10,"b"]])");
  expect_form(std::map<shop::token, shop::token>{{shop::token(1), shop::token(2)}}, "[[1,2]]");
  expect_form(std::map<std::vector<int>, bool>{{{1, 2}, true}}, "[[[1,2],true]]");
  expect_form(std::multimap<int, int>{{1, 2}, {1, 3}}, "[[1,2],[1,3]]");
}

TEST(serde, sets_are_arrays) {
  expect_form(std::set<int>{3, 1, 2}, "[1,2,3]");
  expect_form(std::multiset<int>{1, 1}, "[1,1]");
  expect_form(std::unordered_set<std::string>{"b", "a"}, R"(["a","b"])");
}

TEST(serde, keys_that_come_twice_are_bad_data) {
  EXPECT_TRUE(contains(bad_data<std::set<int>>("[1,2,1]"), "at $[2]: expected a key that was not"));
  using by_name = std::map<std::string, int>;
  EXPECT_TRUE(contains(bad_data<by_name>(R"({"a":1,"a":2})"), "at ${entry 1}: expected a key"));
  using by_number = std::unordered_map<int, int>;
  EXPECT_TRUE(contains(bad_data<by_number>("[[1,1],[1,1]]"), "at $[1]: expected a key"));
}

TEST(serde, variants_are_the_index_and_the_value) {
  using variant = std::variant<int, std::string, int, std::monostate>;
  expect_form(variant(std::in_place_index<0>, 5), "[0,5]");
  expect_form(variant("x"), R"([1,"x"])");
  expect_form(variant(std::in_place_index<2>, 5), "[2,5]");
  expect_form(variant(std::monostate()), "[3,null]");
  expect_form(std::variant<shop::token>(shop::token(4)), "[0,4]");
  expect_form(std::optional<variant>(variant("x")), R"([1,"x"])");
  EXPECT_TRUE(contains(bad_data<variant>("[4,1]"), "at $[0]: expected the index of one of 4"));
  EXPECT_TRUE(contains(bad_data<variant>("[1,1]"), "at $[1]: expected a string"));
}

TEST(serde, variants_without_a_value_are_refused) {
  std::variant<int, std::deque<int>> v;
  const std::size_t too_many = std::deque<int>().max_size() + 1;
  EXPECT_TRUE(holds<std::length_error>(thrown_by([&] { return v.emplace<1>(too_many); })));
  ASSERT_TRUE(v.valueless_by_exception());
  EXPECT_EQ(code_of(thrown_by([&] { return encode(v); })), errc::invalid_argument);
}

TEST(serde, durations_are_counts_and_times_are_since_the_epoch) {
  expect_form(1500ms, "1500");
  expect_form(std::chrono::nanoseconds::max(), "9223372036854775807");
  expect_form(std::chrono::duration<double>(0.1), "0.1");
  expect_form(std::chrono::sys_seconds(1'700'000'000s), "1700000000");
  expect_form(std::chrono::steady_clock::time_point(5ns), "5");
}

TEST(serde, described_structs_are_objects_in_the_order_of_their_members) {
  shop::order o;
  o.id = 7;
  o.lines = {{"a", 1}, {"b", 2}};
  expect_form(o, R"({"id":7,"lines":[{"sku":"a","cents":1},{"sku":"b","cents":2}],)"
                 R"("gift":null,"global":{"n":0}})");
  o.gift = shop::line{"c", 3};
  EXPECT_EQ(decode<shop::order>(encode(o)), o);
  expect_form(shop::nothing(), "{}");
  EXPECT_EQ(encode(shop::outer{{3}}), R"({"in":{"n":3}})");
  expect_form(hidden{1, {hidden{2, {}}}}, R"({"weir":1,"visitor":[{"weir":2,"visitor":[]}]})");
}

TEST(serde, described_structs_may_have_64_members) {
  shop::wide w;
  w.a0 = 100;
  w.g3 = 200;
  const std::string text = encode(w);
  EXPECT_TRUE(text.starts_with(R"({"a0":100,"a1":1,)"));
  EXPECT_TRUE(text.ends_with(R"("g2":2,"g3":200})"));
  EXPECT_EQ(decode<shop::wide>(text), w);
}

TEST(serde, members_of_a_base_may_be_listed) {
  shop::special_order o;
  o.id = 3;
  o.discount = 4;
  EXPECT_EQ(encode(o), R"({"id":3,"lines":[],"discount":4})");
  EXPECT_EQ(decode<shop::special_order>(encode(o)).id, 3);
}

TEST(serde, types_need_not_be_copyable) {
  shop::handle h;
  h.owned = std::make_unique<int>(1);
  h.more.push_back(nullptr);
  h.more.push_back(std::make_unique<int>(2));
  EXPECT_EQ(encode(h), R"({"owned":1,"more":[null,2]})");
  EXPECT_EQ(*decode<shop::handle>(encode(h)).more.at(1), 2);
}

TEST(serde, members_that_are_missing_keep_their_default) {
  const auto o = decode<shop::order>(R"({"lines":[{"sku":"a"},{}]})");
  EXPECT_EQ(o.id, -1);
  EXPECT_EQ(o.lines, (std::vector<shop::line>{{"a", 5}, {"", 5}}));
}

TEST(serde, members_that_are_unknown_are_ignored) {
  const auto o = decode<shop::order>(R"({"new":[1,{"id":3}],"id":7,"newer":null})");
  EXPECT_EQ(o.id, 7);
  EXPECT_EQ(decode<shop::nothing>(R"({"a":{"b":1}})"), shop::nothing());
}

TEST(serde, members_may_come_in_any_order) {
  const auto o = decode<shop::order>(R"({"global":{"n":1},"gift":{"cents":9,"sku":"x"},"id":7})");
  EXPECT_EQ(o.id, 7);
  EXPECT_EQ(o.global.n, 1);
  EXPECT_EQ(o.gift, (shop::line{"x", 9}));
}

TEST(serde, types_of_boost_describe_are_stored_with_their_bases_and_private_members) {
  expect_form(shop::priced{3}, R"({"cents":3})");
  shop::sold s("ann");
  s.cents = 4;
  expect_form(s, R"({"cents":4,"buyer_":"ann"})");
  expect_form(std::vector<shop::priced>{{1}}, R"([{"cents":1}])");
}

TEST(serde, the_description_of_weir_wins_over_that_of_boost) {
  expect_form(shop::both{1, 5}, R"({"b":5})");
}

TEST(serde, random_values_of_a_recursive_type_read_back) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const std::string text = encode(random_tree(random, 3));
    EXPECT_EQ(encode(decode<tree>(text)), text);
  }
}

TEST(serde, equal_values_have_equal_bytes_whatever_their_history) {
  std::unordered_map<std::string, std::unordered_map<int, int>> one;
  auto other = one;
  other.reserve(1000);
  for (int i = 0; i < 100; ++i) one[std::to_string(i)][i] = one[std::to_string(i)][-i] = i;
  for (int i = 99; i >= 0; --i) other[std::to_string(i)][-i] = other[std::to_string(i)][i] = i;
  ASSERT_EQ(one, other);
  EXPECT_EQ(encode(one), encode(other));
  EXPECT_EQ(decode<decltype(one)>(encode(one)), one);
}
