// SPDX-License-Identifier: MIT
// on_event(all_loops, fn): "process-wide, called on the loop where it happened, from any of them at
// once".
#include <atomic>
#include <thread>
#include <vector>

#include "support/sanitizers.hpp"
#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace {

constexpr int events = test_support::sanitized ? 200 : 2000;
constexpr int emitting_threads = 3;

void make_event() {
  weir::permit broken([] { throw boom(1); });
}

/// A loop on each of several threads, which makes events.
template <class F>
void on_threads(F body) {
  std::vector<std::thread> all;
  for (int i = 0; i < emitting_threads; ++i)
    all.emplace_back([&] { weir::run([&]() -> task<> { co_await body(); }); });
  for (std::thread& t : all) t.join();
}

task<> make_events() {
  for (int i = 0; i < events; ++i) {
    make_event();
    if (i % 16 == 0) co_await weir::yield();
  }
}

}  // namespace

TEST(event_threads, all_loops_sees_every_event_with_its_error_on_the_thread_where_it_happens) {
  std::atomic<long> seen{0}, elsewhere{0};
  // Made outside of any loop, and before those loops exist.
  auto all = weir::on_event(weir::all_loops, [&](const weir::event_info& e) {
    if (e.name != "cleanup_failed") return;
    seen += boom_of(e.error);
    const auto here = weir::recent_events();  // of the loop where it happens
    if (here.events.empty() || here.events.back().name != "cleanup_failed") ++elsewhere;
  });
  on_threads(make_events);
  EXPECT_EQ(seen, emitting_threads * events);
  EXPECT_EQ(elsewhere, 0);
}

// When the subscription is gone, the function is not running any more, on any thread.
TEST(event_threads, after_the_subscription_ended_nothing_is_called) {
  std::atomic<bool> stop{false};
  std::atomic<long> late{0};
  std::thread subscriber([&] {
    for (int i = 0; i < events; ++i) {
      std::atomic<bool> alive{true};
      {
        auto all = weir::on_event(weir::all_loops, [&](const weir::event_info&) {
          if (!alive) ++late;
        });
      }
      alive = false;
    }
    stop = true;
  });
  on_threads([&]() -> task<> {
    while (!stop) {
      make_event();
      co_await weir::yield();
    }
  });
  subscriber.join();
  EXPECT_EQ(late, 0);
}

// The neighbours: a function that ends its own subscription, one that throws, and one that makes
// another event.
TEST(event_threads, a_function_may_end_its_own_subscription_fail_or_make_events) {
  weir::run([]() -> task<> {
    int told = 0, nested = 0;
    std::unique_ptr<weir::detail::process_watch> once;
    once = weir::on_event(weir::all_loops, [&](const weir::event_info&) {
      ++told;
      once.reset();
    });
    auto bad = weir::on_event(weir::all_loops, [](const weir::event_info&) { throw boom(2); });
    auto again = weir::on_event(weir::all_loops, [&](const weir::event_info&) {
      if (++nested == 1) make_event();
    });
    make_event();
    make_event();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(nested, 3);
    long failed = 0;
    for (const auto& e : weir::recent_events().events)
      if (e.name == "observer_failed") failed += boom_of(e.error) == 2;
    EXPECT_EQ(failed, 3);
    co_return;
  });
}
