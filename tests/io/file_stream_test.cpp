// SPDX-License-Identifier: MIT
// io::lines and io::chunks.
#include <limits>

#include "io/file_support.hpp"

using namespace weir_test;

namespace {

template <class S>
task<std::vector<std::string>> all_of_stream(S& stream) {
  std::vector<std::string> all;
  while (auto item = co_await stream.next()) all.push_back(std::move(*item));
  co_return all;
}

using text_list = std::vector<std::string>;

}  // namespace

TEST(file_stream, lines_come_without_their_end_and_the_last_may_lack_it) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    struct sample {
      std::string text;
      text_list lines;
    };
    const std::vector<sample> samples{{"", {}},
                                      {"\n", {""}},
                                      {"one", {"one"}},
                                      {"one\n", {"one"}},
                                      {"one\ntwo\r\nthree", {"one", "two", "three"}},
                                      {"\r\n\n\r\n", {"", "", ""}},
                                      {"a\rb\n\r\r\n", {"a\rb", "\r"}},
                                      {"tail\r", {"tail\r"}}};
    for (const sample& s : samples) {
      put(p, s.text);
      auto lines = io::lines(p);
      EXPECT_EQ(co_await all_of_stream(lines), s.lines);
    }
  });
}

TEST(file_stream, lines_may_cross_the_blocks_in_which_they_are_read) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    for (std::size_t before = 65'530; before < 65'540; ++before) {
      put(p, std::string(before, 'a') + "\r\nb\r\n" + std::string(200'000, 'c') + "\n");
      auto lines = io::lines(p);
      const text_list wanted{std::string(before, 'a'), "b", std::string(200'000, 'c')};
      EXPECT_EQ(co_await all_of_stream(lines), wanted);
    }
  });
}

TEST(file_stream, a_line_beyond_the_limit_is_an_error_that_names_the_file) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    put(p, "12345\r\n12345\n123456\n1\n");
    auto lines = io::lines(p, 5);
    EXPECT_EQ(co_await lines.next(), "12345");
    EXPECT_EQ(co_await lines.next(), "12345");
    const auto error = co_await error_of(lines.next());
    EXPECT_EQ(code_of(error), errc::too_long);
    EXPECT_TRUE(contains(what_of(error), p));
    EXPECT_EQ(co_await lines.next(), std::nullopt);
    EXPECT_TRUE(descriptors_of(p).empty());
  });
}

TEST(file_stream, a_line_beyond_the_limit_is_found_before_its_end_was_read) {
  on_both([]() -> task<> {
    auto lines = io::lines("/dev/zero", 1000);
    EXPECT_EQ(code_of(co_await error_of(lines.next())), errc::too_long);
  });
}

TEST(file_stream, chunks_are_full_but_for_the_last) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    std::string all;
    for (int i = 0; all.size() < 200'000; ++i) all += std::to_string(i);
    put(p, all);
    for (const std::size_t n :
         {std::size_t{1000}, std::size_t{65'536}, std::size_t{100'001}, all.size(), all.size() + 1,
          std::numeric_limits<std::size_t>::max()}) {
      auto chunks = io::chunks(p, n);
      const text_list parts = co_await all_of_stream(chunks);
      std::string joined;
      for (const std::string& part : parts) {
        EXPECT_TRUE(part.size() == n || &part == &parts.back());
        joined += part;
      }
      EXPECT_EQ(joined, all);
    }
  });
}

TEST(file_stream, an_empty_file_has_no_chunks_and_chunks_of_nothing_are_refused) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    put(p, "");
    auto chunks = io::chunks(p, 10);
    EXPECT_EQ(co_await chunks.next(), std::nullopt);
    EXPECT_EQ(co_await chunks.next(), std::nullopt);
    EXPECT_EQ(code_of(thrown_by([&] { return io::chunks(p, 0); })), errc::invalid_argument);
  });
}

TEST(file_stream, the_file_is_opened_at_the_first_pull_and_closed_at_the_end) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    auto lines = io::lines(p);
    put(p, "one\ntwo\n");  // after the stream was made
    EXPECT_TRUE(descriptors_of(p).empty());
    EXPECT_EQ(co_await lines.next(), "one");
    EXPECT_EQ(descriptors_of(p).size(), 1U);
    EXPECT_EQ(co_await lines.next(), "two");
    EXPECT_EQ(co_await lines.next(), std::nullopt);
    EXPECT_TRUE(descriptors_of(p).empty());
  });
}

TEST(file_stream, a_stream_that_is_dropped_or_closed_early_closes_its_file) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    put(p, "one\ntwo\n");
    {
      auto dropped = io::lines(p);
      EXPECT_EQ(co_await dropped.next(), "one");
    }
    EXPECT_TRUE(descriptors_of(p).empty());
    auto closed = io::chunks(p, 3);
    EXPECT_EQ(co_await closed.next(), "one");
    co_await closed.close();
    EXPECT_TRUE(descriptors_of(p).empty());
    EXPECT_EQ(co_await closed.next(), std::nullopt);
  });
}

TEST(file_stream, an_error_of_the_file_comes_with_the_first_pull) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "missing";
    auto lines = io::lines(p);
    const auto error = co_await error_of(lines.next());
    EXPECT_EQ(code_of(error), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(contains(what_of(error), p));
    auto folder = io::chunks(d.path(), 10);
    EXPECT_EQ(code_of(co_await error_of(folder.next())), std::errc::is_a_directory);
  });
}

TEST(file_stream, works_with_operators_and_as_any_stream) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    put(p, "a\nbb\nccc\n");
    auto sizes = io::lines(p) | weir::map([](const std::string& line) { return line.size(); }) |
                 weir::take(2);
    EXPECT_EQ(co_await sizes.next(), 1U);
    EXPECT_EQ(co_await sizes.next(), 2U);
    EXPECT_EQ(co_await sizes.next(), std::nullopt);
    weir::any_stream<std::string> any = io::lines(p);
    EXPECT_EQ(co_await any.next(), "a");
  });
}

FIBER_TEST_IN_EVERY_ORDER(file_stream, a_pull_that_loses_a_race_loses_no_line) {
  const temporary_directory d;
  const std::string p = d / "f";
  put(p, "1\n2\n3\n4\n5\n");
  auto lines = io::lines(p);
  text_list all;
  while (all.size() < 5) {
    for (int lost = 0; lost < 3;) {  // the order may let the sleep win always
      auto result = co_await weir::race(lines.next(), weir::sleep(0ms));
      if (result.index() != 0) {
        ++lost;
      } else {
        const auto line = std::get<0>(result);
        if (!line) break;
        all.push_back(*line);
      }
    }
    if (const auto line = co_await lines.next()) all.push_back(*line);
  }
  EXPECT_EQ(all, (text_list{"1", "2", "3", "4", "5"}));
}
