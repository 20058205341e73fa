// SPDX-License-Identifier: MIT
// Processes of several loops at once, while other threads open descriptors and allocate.
#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "process_support.hpp"

using namespace weir_test;

TEST(process_threads, several_loops_start_and_end_processes_at_once) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime rt(s, {.threads = 3});
      auto many = []() -> task<int> {
        int right = 0;
        for (int i = 0; i < 20; ++i) {
          const auto r = co_await io::process::run(io::command("cat").input("hello"));
          right += r.ok() && r.out() == "hello" ? 1 : 0;
          io::command c("sleep", "1000");
          auto late = co_await weir::settle(weir::with_timeout(1ms, io::process::run(c)));
          right += late.is_error() ? 1 : 0;
        }
        co_return right;
      };
      std::vector<weir::child<int>> all;
      for (std::size_t i = 0; i < rt.size(); ++i) all.push_back(s.spawn_on(rt.at(i), many));
      for (auto& one : all) EXPECT_EQ(co_await one, 40);
    });
  };
  weir::run(program);
  EXPECT_TRUE(has_no_child());
}

TEST(process_threads, a_child_gets_no_descriptor_that_another_thread_opens_meanwhile) {
  std::atomic<bool> stop{false};
  std::thread opens([&] {
    while (!stop) {
      std::vector<std::string> work(10, std::string(100, 'x'));
      ::close(::open("/dev/zero", O_RDONLY));  // not close-on-exec
    }
  });
  auto program = []() -> task<> {
    for (int i = 0; i < 50; ++i) {
      const auto r = co_await io::process::run(io::command("ls", "-l", "/proc/self/fd"));
      EXPECT_FALSE(contains(r.out(), "/dev/zero")) << r.out();
    }
  };
  weir::run(program);
  stop = true;
  opens.join();
}

TEST(process_threads, a_process_of_another_loop_is_refused) {
  auto program = []() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::loop_thread other(s);
      io::process p = io::process::spawn(s, io::command("cat"));
      auto use = [&]() -> task<std::error_code> {
        co_return code_of(thrown_by([&] { return p.wait(); }));
      };
      EXPECT_EQ(co_await weir::on(other, use), errc::wrong_loop);
      p.close_input();
      EXPECT_TRUE((co_await p.wait()).ok());
    });
  };
  weir::run(program);
}
