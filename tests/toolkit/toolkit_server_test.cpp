// SPDX-License-Identifier: MIT
// The toolkit as servers use it: requests that are answered, refused, malformed or late.
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

task<std::string> handle(const std::map<std::string, std::string>& store, std::string request) {
  co_await weir::sleep(1ms);
  const auto found = store.find(request);
  if (found == store.end()) throw std::runtime_error("unknown method " + request);
  co_return found->second;
}

/// The text of a frame: one byte of opcode, then the payload.
std::string text_of_frame(const std::string& frame) {
  constexpr char text_opcode = 1;
  if (frame.empty() || frame[0] != text_opcode) throw std::runtime_error("unsupported opcode");
  return frame.substr(1);
}

}  // namespace

FIBER_TEST(server, a_task_dispatches_a_request_in_memory) {
  const std::map<std::string, std::string> store = {{"ping", "pong"}};
  const std::string answer = co_await handle(store, "ping");
  EXPECT_EQ(answer, "pong");
  const auto error = co_await attempt([&] { return handle(store, "pang"); });
  EXPECT_EQ(what_of(error), "unknown method pang");
}

TEST(server, a_pool_of_one_worker_and_one_place_refuses_the_third_request) {
  weir::sim::world w({.seed = 1});
  w.run([]() -> task<> {
    auto serve = [](weir::pool& p) -> task<> {
      int served = 0;
      auto request = [&]() -> task<> {
        co_await weir::sleep(5ms);
        ++served;
      };
      EXPECT_FALSE(p.try_submit(request));
      EXPECT_FALSE(p.try_submit(request));
      EXPECT_EQ(p.try_submit(request), errc::pool_full);
      co_await p.close();
      EXPECT_EQ(served, 2);
    };
    co_await weir::with_pool({.workers = 1, .queue_size = 1}, serve);
  });
}

FIBER_TEST(server, a_malformed_frame_fails_the_group_of_its_connection_with_its_own_error) {
  std::vector<std::string> texts;
  auto connection = [&](weir::group& g) -> task<> {
    for (const char* frame : {"\1hello", "\1world", "\2binary"})
      g.go([&texts, frame]() -> task<> {
        texts.push_back(text_of_frame(frame));
        co_return;
      });
    co_await g.wait();
  };
  const auto error = co_await attempt([&] { return weir::with_group(connection); });
  EXPECT_EQ(what_of(error), "unsupported opcode");
  EXPECT_EQ(texts, (std::vector<std::string>{"hello", "world"}));
}

FIBER_TEST(server, a_response_comes_within_its_limit_or_not_at_all) {
  const std::map<std::string, std::string> store = {{"page", "<html>"}};
  const std::string page = co_await weir::with_timeout(1s, handle(store, "page"));
  EXPECT_EQ(page, "<html>");
  const auto start = weir::now();
  const auto late = co_await attempt([] { return weir::with_timeout(1s, weir::sleep(1h)); });
  EXPECT_TRUE(holds<weir::timeout_error>(late));
  EXPECT_EQ(ms_since(start), 1000);
}
