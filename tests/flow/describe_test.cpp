// SPDX-License-Identifier: MIT
// describe of errors that come out of pipelines: "where it was thrown, awaited and spawned", in
// functions and lines of the user, and short.
#include <functional>
#include <vector>

#include "support/test_support.hpp"

using namespace test_support;
using weir::task;

namespace shop {

namespace {

struct order {
  int id;
  std::string text;
};

weir::stream<order> orders(int n) {
  for (int i = 0; i < n; ++i) {
    co_await weir::sleep(1ms);
    order next{i, "text"};
    co_yield std::move(next);
  }
}

constexpr int check_line = __LINE__ + 3;
template <class T>
task<T> check(T o) {
  co_await weir::sleep(1ms);
  if (o.id == 3) throw boom(3);
  co_return o;
}

struct clerk {
  task<int> price(order o) {
    co_await weir::sleep(1ms);
    if (o.id == 2) throw boom(2);
    co_return o.id;
  }
};

task<int> even(int n);
task<int> odd(int n) {
  if (n == 0) throw boom(1);
  co_return co_await even(n - 1);
}
task<int> even(int n) { co_return co_await odd(n > 0 ? n - 1 : 0); }

}  // namespace

}  // namespace shop

namespace {

template <class F>
std::string described(F op) {
  try {
    weir::sim::run({.seed = 1}, op);
  } catch (...) {
    return weir::describe(std::current_exception());
  }
  return "no error";
}

/// Places without their folder, which depends on where the test was built.
std::size_t size_without_folders(std::string text) {
  const std::string file = __FILE__;
  const std::string folder = file.substr(0, file.rfind('/') + 1);
  for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;)
    text.erase(at, folder.size());
  return text.size();
}

void expect_no_noise(const std::string& text) {
  for (const char* noise : {"weir::detail", "[with ", "std::allocator", "stream_async.hpp", "<"})
    EXPECT_FALSE(contains(text, noise)) << noise << " in:\n" << text;
}

}  // namespace

TEST(describe, a_pipeline_of_six_stages_is_described_by_the_lines_of_its_user) {
  int sink_line = 0;
  const std::string text = described([&]() -> task<> {
    auto st = shop::orders(10) | weir::map([](shop::order o) { return o; }) |
              weir::filter([](const shop::order& o) { return o.id >= 0; }) |
              weir::map_async(4, [](shop::order o) { return shop::check(std::move(o)); }) |
              weir::map([](shop::order o) { return o.id; }) | weir::chunks(2, 5ms);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto work = [&]() -> task<> {
        sink_line = __LINE__ + 1;
        co_await (std::move(st) | weir::for_each([](const std::vector<int>&) {}));
      };
      s.spawn(work, {.name = "worker"});
      co_return;
    });
  });
  expect_no_noise(text);
  EXPECT_TRUE(contains(text, "thrown in shop::check(), after its await at")) << text;
  EXPECT_TRUE(contains(text, at_line(shop::check_line))) << text;
  EXPECT_TRUE(contains(text, at_line(sink_line))) << text;
  EXPECT_TRUE(contains(text, "as 'worker'")) << text;
  EXPECT_LE(size_without_folders(text), 600u) << text;
}

TEST(describe, agents_and_policies_are_as_short) {
  const std::string agents = described([]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto clerk = weir::spawn_agent<shop::clerk>(s, {.name = "clerk"});
      auto ask = [&](shop::order o) -> task<int> {
        co_return co_await weir::with_timeout(1s, clerk.call(&shop::clerk::price, o));
      };
      co_await (shop::orders(5) | weir::map_async(2, ask) | weir::for_each([](int) {}));
    });
  });
  expect_no_noise(agents);
  EXPECT_TRUE(contains(agents, "thrown in shop::clerk::price()")) << agents;
  EXPECT_LE(size_without_folders(agents), 600u) << agents;

  const std::string policies = described([]() -> task<> {
    auto op = [] { return shop::check(shop::order{3, "text"}); };
    co_await (op | weir::retry({.attempts = 3, .base = 1ms}) | weir::timeout(1s) |
              weir::bulkhead(2) | weir::trace("shop"));
  });
  expect_no_noise(policies);
  EXPECT_TRUE(contains(policies, "thrown in shop::check()")) << policies;
  EXPECT_LE(size_without_folders(policies), 400u) << policies;
}

// Frames of weir take no place from those of the user: at most 32 are kept.
TEST(describe, the_users_frames_stay_below_many_frames_of_weir) {
  const std::string text = described([]() -> task<> {
    std::function<task<>(int)> nest = [&](int n) -> task<> {
      if (n == 0) throw boom(1);
      co_await weir::with_scope(
          [&](weir::scope&) -> task<> { co_await weir::with_timeout(1s, nest(n - 1)); });
    };
    co_await nest(40);
  });
  expect_no_noise(text);
  EXPECT_TRUE(contains(text, "as 'main'") || contains(text, "spawned at")) << text;
}

TEST(describe, recursion_and_equal_errors_of_a_group_are_folded) {
  const std::string recursion = described([]() -> task<> { co_await shop::even(50); });
  EXPECT_LE(size_without_folders(recursion), 400u) << recursion;

  const std::string group = described([]() -> task<> {
    co_await weir::with_scope({.failure = weir::failure::wait_for_all, .errors = weir::errors::all},
                              [&](weir::scope& s) -> task<> {
                                for (int i = 0; i < 100; ++i)
                                  s.spawn(shop::check(shop::order{3, "text"}));
                                co_return;
                              });
  });
  EXPECT_TRUE(contains(group, "100 errors")) << group;
  EXPECT_TRUE(contains(group, "... and 99 more like it")) << group;
  EXPECT_LE(size_without_folders(group), 600u) << group;
}

// "names the first and the last, not "4 errors""
TEST(describe, the_text_of_a_group_names_the_first_and_the_last) {
  const auto group_of = [](int n) {
    std::vector<std::exception_ptr> errors;
    for (int i = 1; i <= n; ++i)
      errors.push_back(std::make_exception_ptr(std::runtime_error("e" + std::to_string(i))));
    return std::string(weir::error_group(errors).what());
  };
  EXPECT_EQ(group_of(1), "1 error: e1");
  EXPECT_EQ(group_of(2), "2 errors: e1; e2");
  EXPECT_EQ(group_of(4), "4 errors, the first: e1; the last: e4");
  const auto same = std::make_exception_ptr(std::runtime_error("e"));
  EXPECT_EQ(std::string(weir::error_group({same, same, same}).what()),
            "3 errors, the first and the last: e");
}
