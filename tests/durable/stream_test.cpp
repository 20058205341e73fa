// SPDX-License-Identifier: MIT
// Streams in a run, of generators that await what cannot be withdrawn: steps, calls, journaled
// sleeps in a scope. Promises: "After a value, a wait that cannot be withdrawn stays in flight, and
// the next pull attaches to it", "only cancelling a pending next() interrupts it", and "streams: as
// everywhere, deterministic under replay".
#include "durable/support/sources.hpp"

using namespace durable_test;

namespace {

task<int> slow_child(int n) {
  co_await weir::sleep(5h);
  co_return co_await give("child " + std::to_string(n), n * 10);
}

template <class H>
void streams_survive(H handler, const std::string& want, const births& born = when_it_died,
                     steps kind = steps::one_at_a_time) {
  all_crashes(with_child(handler, slow_child), want, born, kind);
}

/// The kinds of generators; each gives 0, 10, ... with the distance `each`.
weir::stream<int> stepped(std::string name, int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    const int v = co_await give_after(each, name + std::to_string(i), i * 10);
    co_yield v;
  }
}
weir::stream<int> scoped(std::string name, int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    const int v = co_await weir::with_scope([&](weir::scope& s) -> task<int> {
      auto inside = s.spawn(give_after(each, name + std::to_string(i), i * 10));
      co_return co_await inside;
    });
    co_yield v;
  }
}
weir::stream<int> limited(std::string name, int count, weir::duration each) {
  for (int i = 0; i < count; ++i) {
    auto one = give_after(each, name + std::to_string(i), i * 10);
    const int v = co_await weir::with_timeout(1000h, std::move(one));
    co_yield v;
  }
}
weir::stream<int> called(int count) {
  for (int i = 0; i < count; ++i) {
    const int v = co_await weir::call<int>("child", i);
    co_yield v;
  }
}
weir::stream<int> ticks(int count, weir::duration each) {
  for (int i = 1; i <= count; ++i) {
    co_await weir::sleep(each);
    co_yield i;
  }
}

/// Pull by pull, with a step after each, in which the process dies.
template <class S>
task<std::vector<int>> pulled(S& from) {
  std::vector<int> all;
  for (;;) {
    auto v = co_await from.next();
    if (!v) break;
    all.push_back(*v);
    (void)co_await give("seen " + std::to_string(all.size()), 0);
  }
  co_return all;
}

/// What `make()` gives, pull by pull, is `want`, whatever happens.
template <class Make>
void gives(Make make, const std::string& want) {
  streams_survive(
      [make](int) -> task<std::string> {
        auto s = make();
        const std::vector<int> all = co_await pulled(s);
        co_return text(all);
      },
      want);
}

int sum(const std::tuple<int, int>& both) { return std::get<0>(both) + std::get<1>(both); }

}  // namespace

TEST(durable_stream, merged_generators_stay_in_flight_over_every_crash) {
  gives([] { return weir::merge(stepped("a", 3, 5h), ticks(4, 3h)); }, "1,0,2,3,10,4,20");
  gives([] { return weir::merge(scoped("a", 3, 5h), ticks(4, 3h)); }, "1,0,2,3,10,4,20");
  gives([] { return weir::merge(limited("a", 3, 5h), ticks(4, 3h)); }, "1,0,2,3,10,4,20");
  gives([] { return weir::merge(called(3), ticks(4, 3h)); }, "1,0,2,3,10,4,20");
  gives([] { return weir::merge(stepped("a", 2, 5h), limited("b", 2, 7h)); }, "0,0,10,10");
}

TEST(durable_stream, take_until_ends_what_is_in_flight_over_every_crash) {
  const auto stop = [] { return nap(12h, 0); };
  gives([=] { return stepped("a", 9, 5h) | weir::take_until(stop()); }, "0,10");
  gives([=] { return scoped("a", 9, 5h) | weir::take_until(stop()); }, "0,10");
  gives([=] { return limited("a", 9, 5h) | weir::take_until(stop()); }, "0,10");
  gives([=] { return called(9) | weir::take_until(stop()); }, "0,10");
  gives([] { return ticks(9, 5h) | weir::take_until(give_after(12h, "stop", 0)); }, "1,2");
}

TEST(durable_stream, other_stages_stay_in_flight_over_every_crash) {
  gives([] { return weir::combine_latest(called(2), ticks(3, 4h)) | weir::map(sum); }, "1,2,12,13");
  gives([] { return ticks(3, 4h) | weir::with_latest_from(called(2)) | weir::map(sum); }, "2,13");
  gives([] { return weir::zip(scoped("a", 2, 5h), ticks(3, 4h)) | weir::map(sum); }, "1,12");
  gives([] { return weir::race_streams(called(2), ticks(3, 4h)); }, "1,2,3");
  gives(
      [] {
        auto size = [](const std::vector<int>& some) { return static_cast<int>(some.size()); };
        return called(5) | weir::chunks(3, 7h) | weir::map(size);
      },
      "2,2,1");
  gives(
      [] {
        auto inner = [](int n) { return stepped("from " + std::to_string(n) + " ", 3, 5h); };
        return ticks(2, 7h) | weir::switch_map(inner);
      },
      "0,0,10,20");
}

// The value of what was in flight waits; what comes after it is begun by the next pull.
TEST(durable_stream, what_is_in_flight_goes_on_between_two_pulls) {
  streams_survive(
      [](int) -> task<std::string> {
        auto s = weir::merge(called(2), ticks(1, 1h));
        const int first = *(co_await s.next());
        co_await weir::sleep(20h);
        (void)co_await give("later", 0);
        const auto start = weir::now();
        const int second = *(co_await s.next());
        const auto waited = (weir::now() - start) / 1h;
        const int third = *(co_await s.next());
        const auto waited_again = (weir::now() - start) / 1h;
        co_return row(first, second, waited, third, waited_again);
      },
      "1,0,0,10,5");
}

TEST(durable_stream, one_that_is_closed_or_destroyed_in_flight_ends_the_same_after_every_crash) {
  for (const bool close : {false, true})
    streams_survive(
        [close](int) -> task<std::string> {
          int first = -1;
          co_await weir::with_scope([&](weir::scope&) -> task<> {
            auto s = weir::merge(limited("a", 3, 5h), called(1), ticks(2, 1h));
            first = *(co_await s.next());
            (void)co_await give("first", 0);
            if (close) co_await s.close();
          });
          (void)co_await give("after", 0);
          co_await weir::sleep(20h);
          (void)co_await give("end", 0);
          co_return row(first);
        },
        "1");
}

TEST(durable_stream, a_cancelled_pull_interrupts_it_in_every_life) {
  streams_survive(
      [](int) -> task<std::string> {
        auto s = weir::merge(limited("a", 3, 5h), ticks(1, 1h));
        std::string heard = std::to_string(*(co_await s.next()));
        (void)co_await give("first", 0);
        const auto next = co_await s.next_for(2h);
        heard += next.timed_out() ? " timed out" : " ?";
        (void)co_await give("second", 0);
        try {
          (void)co_await s.next();
        } catch (const weir::error& e) {
          heard += e.code() == errc::stream_interrupted ? " interrupted" : e.what();
          heard += test_support::contains(e.what(), "limited") ? " limited" : e.what();
        }
        (void)co_await give("third", 0);
        co_return heard;
      },
      "1 timed out interrupted limited");
}

// What is in flight when a run is evicted is there again when it is replayed, without a crash.
TEST(durable_stream, a_run_that_was_evicted_in_flight_gives_the_same) {
  const stage on;
  auto handler = [](int) -> task<std::string> {
    auto s = weir::merge(called(3), scoped("a", 2, 7h), ticks(4, 3h));
    const std::vector<int> all = co_await pulled(s);
    co_return text(all);
  };
  auto options = options_for(on);
  options.max_live = 1;
  auto use = [](durable::engine& e) -> task<> {
    auto one = co_await e.start<std::string>("h", {.id = "one"}, 1);
    co_await weir::sleep(1h);
    auto two = co_await e.start<std::string>("h", {.id = "two"}, 1);
    co_await weir::sleep(1h);
    EXPECT_FALSE(e.list({.state = durable::run_state::suspended}).empty());
    EXPECT_EQ(co_await one.result(), "1,0,2,0,3,10,4,10,20");
    EXPECT_EQ(co_await two.result(), "1,0,2,0,3,10,4,10,20");
  };
  sim::run({.seed = 1, .start_time = day0},
           with_open_engine(options, with_child(handler, slow_child), use));
  EXPECT_EQ(times("seen 9"), 2);
}
