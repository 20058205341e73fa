// SPDX-License-Identifier: MIT
// Every operator over one source goes through the same cases: items, nothing, an error, an early
// end, cancellation at every moment, a slow consumer. A row of the table is one operator.
#include <functional>
#include <sstream>
#include <tuple>

#include "stream_support.hpp"

using namespace weir_test;

namespace {

using text_stream = weir::any_stream<std::string>;
using word_list = std::vector<std::string>;

std::string text(int item) { return std::to_string(item); }
template <class T>
std::string text(const std::vector<T>& items) {
  std::string all;
  for (const T& item : items) all += (all.empty() ? "" : "+") + text(item);
  return all;
}
template <class A, class B>
std::string text(const std::pair<A, B>& items) {
  return text(static_cast<int>(items.first)) + ":" + text(items.second);
}
template <class A, class B>
std::string text(const std::tuple<A, B>& items) {
  return text(std::get<0>(items)) + ":" + text(std::get<1>(items));
}

auto as_text() {
  return weir::map([](const auto& item) { return text(item); });
}

struct row {
  const char* name;
  text_stream (*build)(weir::stream<int>);
  const char* of_some;         // the items made of 1 2 2 3 4 5 6
  const char* of_none = "";    // the items made of nothing
  bool fails = true;           // an error behind six items is seen
  bool may_take_more = false;  // pulls its source more than once for an item
};

template <class Op>
text_stream with(weir::stream<int> s, Op op) {
  return text_stream(std::move(s) | std::move(op) | as_text());
}

weir::stream<int> twice(int n) {
  co_yield n;
  co_await weir::yield();
  co_yield n * 10;
}

text_stream map_(weir::stream<int> s) {
  return with(std::move(s), weir::map([](int n) { return n * n; }));
}
text_stream filter_(weir::stream<int> s) { return with(std::move(s), weir::filter(even)); }
text_stream filter_map_(weir::stream<int> s) {
  auto half = [](int n) { return even(n) ? std::optional<int>(n / 2) : std::nullopt; };
  return with(std::move(s), weir::filter_map(half));
}
text_stream scan_(weir::stream<int> s) {
  return with(std::move(s), weir::scan(100, [](int sum, int n) { return sum + n; }));
}
text_stream enumerate_(weir::stream<int> s) { return with(std::move(s), weir::enumerate()); }
text_stream tap_(weir::stream<int> s) {
  return with(std::move(s), weir::tap([](const int&) {}));
}
text_stream dedup_(weir::stream<int> s) { return with(std::move(s), weir::dedup()); }
text_stream distinct_(weir::stream<int> s) {
  return text_stream(std::move(s) | weir::map([](int n) { return n % 3; }) | weir::distinct(2) |
                     as_text());
}
text_stream start_with_(weir::stream<int> s) { return with(std::move(s), weir::start_with(9)); }
text_stream take_(weir::stream<int> s) { return with(std::move(s), weir::take(3)); }
text_stream take_nothing_(weir::stream<int> s) { return with(std::move(s), weir::take(0)); }
text_stream take_too_many_(weir::stream<int> s) { return with(std::move(s), weir::take(1000)); }
text_stream take_while_(weir::stream<int> s) {
  return with(std::move(s), weir::take_while([](int n) { return n < 4; }));
}
text_stream take_until_(weir::stream<int> s) {
  return with(std::move(s), weir::take_until(weir::sleep(1h)));
}
text_stream drop_(weir::stream<int> s) { return with(std::move(s), weir::drop(4)); }
text_stream drop_all_(weir::stream<int> s) { return with(std::move(s), weir::drop(1000)); }
text_stream drop_while_(weir::stream<int> s) {
  return with(std::move(s), weir::drop_while([](int n) { return n < 4; }));
}
text_stream take_last_(weir::stream<int> s) { return with(std::move(s), weir::take_last(2)); }
text_stream skip_last_(weir::stream<int> s) { return with(std::move(s), weir::skip_last(5)); }
text_stream flat_map_(weir::stream<int> s) { return with(std::move(s), weir::flat_map(twice)); }
text_stream flatten_(weir::stream<int> s) {
  return text_stream(std::move(s) | weir::map(twice) | weir::flatten() | as_text());
}
text_stream chunks_(weir::stream<int> s) { return with(std::move(s), weir::chunks(3)); }
text_stream timed_chunks_(weir::stream<int> s) { return with(std::move(s), weir::chunks(3, 1h)); }
text_stream sliding_(weir::stream<int> s) { return with(std::move(s), weir::sliding(5)); }
text_stream group_by_(weir::stream<int> s) {
  return with(std::move(s), weir::group_by([](int n) { return n / 3; }));
}
text_stream timeout_each_(weir::stream<int> s) {
  return with(std::move(s), weir::timeout_each(10h));
}
text_stream catch_with_(weir::stream<int> s) {
  return with(std::move(s), weir::catch_with([](std::exception_ptr) { return weir::once(77); }));
}
text_stream finally_(weir::stream<int> s) {
  return text_stream(std::move(s) | weir::finally([] {}) | as_text());
}
text_stream erased_(weir::stream<int> s) {
  return text_stream(weir::any_stream<int>(std::move(s)) | weir::start_with(9) | as_text());
}

const row table[] = {
    {"map", map_, "1 4 4 9 16 25 36"},
    {"filter", filter_, "2 2 4 6", "", true, true},
    {"filter_map", filter_map_, "1 1 2 3", "", true, true},
    {"scan", scan_, "101 103 105 108 112 117 123"},
    {"enumerate", enumerate_, "0:1 1:2 2:2 3:3 4:4 5:5 6:6"},
    {"tap", tap_, "1 2 2 3 4 5 6"},
    {"dedup", dedup_, "1 2 3 4 5 6", "", true, true},
    {"distinct", distinct_, "1 2 0 1 2 0", "", true, true},
    {"start_with", start_with_, "9 1 2 2 3 4 5 6", "9"},
    {"take", take_, "1 2 2", "", false},
    {"take_nothing", take_nothing_, "", "", false},
    {"take_too_many", take_too_many_, "1 2 2 3 4 5 6"},
    {"take_while", take_while_, "1 2 2 3", "", false},
    {"take_until", take_until_, "1 2 2 3 4 5 6"},
    {"drop", drop_, "4 5 6", "", true, true},
    {"drop_all", drop_all_, "", "", true, true},
    {"drop_while", drop_while_, "4 5 6", "", true, true},
    {"take_last", take_last_, "5 6", "", true, true},
    {"skip_last", skip_last_, "1 2", "", true, true},
    {"flat_map", flat_map_, "1 10 2 20 2 20 3 30 4 40 5 50 6 60"},
    {"flatten", flatten_, "1 10 2 20 2 20 3 30 4 40 5 50 6 60"},
    {"chunks", chunks_, "1+2+2 3+4+5 6", "", true, true},
    {"timed_chunks", timed_chunks_, "1+2+2 3+4+5 6", "", true, true},
    {"sliding", sliding_, "1+2+2+3+4 2+2+3+4+5 2+3+4+5+6", "", true, true},
    {"group_by", group_by_, "0:1+2+2 1:3+4+5 2:6", "", true, true},
    {"timeout_each", timeout_each_, "1 2 2 3 4 5 6"},
    {"catch_with", catch_with_, "1 2 2 3 4 5 6", "", false},
    {"finally", finally_, "1 2 2 3 4 5 6"},
    {"any_stream", erased_, "9 1 2 2 3 4 5 6", "9"},
};

word_list words(const char* line) {
  std::istringstream in(line);
  word_list all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

const numbers some{1, 2, 2, 3, 4, 5, 6};

class stream_operator : public ::testing::TestWithParam<row> {};

INSTANTIATE_TEST_SUITE_P(every, stream_operator, ::testing::ValuesIn(table),
                         [](const auto& which) { return std::string(which.param.name); });

}  // namespace

TEST_P(stream_operator, makes_its_items_of_ready_and_of_waiting_sources) {
  for (const weir::duration pause : {weir::duration(0), weir::duration(1ms)}) {
    in_order([&]() -> task<> {
      probe p{.items = some, .pause = pause};
      auto s = GetParam().build(feed(p));
      auto all = co_await pull_all(s);
      EXPECT_EQ(all, words(GetParam().of_some));
      for (int i = 0; i < 2; ++i) {
        auto more = co_await s.next();
        EXPECT_FALSE(more.has_value());
      }
      EXPECT_EQ(p.entered, p.left);
      co_await s.close();
    });
  }
}

TEST_P(stream_operator, passes_an_empty_source_on) {
  for (const weir::duration pause : {weir::duration(0), weir::duration(1ms)}) {
    in_order([&]() -> task<> {
      probe p{.items = {}, .pause = pause};
      auto s = GetParam().build(feed(p));
      auto all = co_await pull_all(s);
      EXPECT_EQ(all, words(GetParam().of_none));
      EXPECT_EQ(p.entered, p.left);
    });
  }
}

TEST_P(stream_operator, throws_the_error_of_its_source_once_and_is_then_empty) {
  for (const weir::duration pause : {weir::duration(0), weir::duration(1ms)}) {
    in_order([&]() -> task<> {
      probe p{.items = some, .pause = pause, .fails_behind = 6};
      auto s = GetParam().build(feed(p));
      word_list got;
      std::exception_ptr error;
      try {
        for (;;) {
          auto item = co_await s.next();
          if (!item) break;
          got.push_back(*item);
        }
      } catch (...) {
        error = std::current_exception();
      }
      EXPECT_EQ(boom_of(error), GetParam().fails ? 7 : -1);
      EXPECT_EQ(p.entered, p.left);
      auto more = co_await s.next();
      EXPECT_FALSE(more.has_value());
    });
  }
}

TEST_P(stream_operator, closed_or_destroyed_early_leaves_its_source) {
  for (const bool closes : {true, false}) {
    for (int items = 0; items <= 2; ++items) {
      in_order([&]() -> task<> {
        probe p{.items = some, .pause = 1ms};
        {
          auto s = GetParam().build(feed(p));
          for (int i = 0; i < items; ++i) (void)co_await s.next();
          const int given = p.given;
          if (closes) {
            co_await s.close();
            EXPECT_EQ(p.entered, p.left);
            auto more = co_await s.next();
            EXPECT_FALSE(more.has_value());
            co_await s.close();
          }
          EXPECT_EQ(p.given, given);
        }
        EXPECT_EQ(p.entered, p.left);
        EXPECT_LE(p.entered, 1);
        EXPECT_EQ(p.caught, 0);
        EXPECT_EQ(live_timers(), 0);
      });
    }
  }
}

TEST_P(stream_operator, loses_nothing_if_pulls_are_given_up_at_any_moment) {
  for (const weir::duration patience : {100us, 400us, 900us, 1100us}) {
    in_order([&]() -> task<> {
      probe p{.items = some, .pause = 1ms};
      auto s = GetParam().build(feed(p));
      int given_up = 0;
      auto all = co_await pull_all_impatiently(s, patience, given_up);
      EXPECT_EQ(all, words(GetParam().of_some));
      EXPECT_EQ(p.entered, p.left);
    });
  }
}
TEST_P(stream_operator, leaves_its_source_if_the_consumer_is_cancelled_at_any_moment) {
  for (int moment = 0; moment <= 18; ++moment) {
    in_order([&]() -> task<> {
      probe p{.items = some, .pause = 1ms};
      co_await weir::with_scope([&](weir::scope& scope) -> task<> {
        auto consumer = scope.spawn([&]() -> task<> {
          auto s = GetParam().build(feed(p));
          (void)co_await pull_all(s);
        });
        co_await weir::sleep(moment * 500us);
        consumer.cancel();
        co_await scope.idle();
      });
      EXPECT_EQ(p.entered, p.left);
      EXPECT_EQ(p.caught, 0);
      EXPECT_EQ(live_timers(), 0);
    });
  }
}

TEST_P(stream_operator, does_nothing_while_a_slow_consumer_does_not_pull) {
  in_order([&]() -> task<> {
    probe p{.items = some, .pause = 1ms};
    auto s = GetParam().build(feed(p));
    word_list all;
    for (;;) {
      const int before = p.given;
      auto item = co_await s.next();
      if (!item) break;
      all.push_back(*item);
      const int given = p.given;
      EXPECT_TRUE(GetParam().may_take_more || given - before <= 1);
      co_await weir::sleep(20ms);
      EXPECT_EQ(p.given, given);
    }
    EXPECT_EQ(all, words(GetParam().of_some));
  });
}

// Nothing that an order decides: it is the same in all.
TEST_P(stream_operator, does_the_same_beside_another_fiber_in_every_order) {
  in_every_order([&]() -> task<> {
    probe p{.items = some, .pause = 1ms};
    co_await weir::with_scope([&](weir::scope& scope) -> task<> {
      scope.spawn([]() -> task<> {
        for (int i = 0; i < 3; ++i) co_await weir::sleep(1ms);
      });
      auto s = GetParam().build(feed(p));
      int given_up = 0;
      auto all = co_await pull_all_impatiently(s, 2500us, given_up);
      EXPECT_EQ(all, words(GetParam().of_some));
    });
  });
}
