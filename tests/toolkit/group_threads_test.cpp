// SPDX-License-Identifier: MIT
// Groups and periodic jobs belong to their loop.
#include <thread>

#include "toolkit_support.hpp"

using namespace weir_test;

namespace {

template <class F>
std::error_code code_on_another_thread(F f) {
  std::error_code code;
  std::thread([&] { code = code_thrown_by(f); }).join();
  return code;
}

}  // namespace

TEST(group_threads, a_group_refuses_to_be_used_from_another_thread) {
  bool ran = false;
  weir::run([&]() -> task<> {
    co_await weir::with_group([&](weir::group& g) -> task<> {
      auto job = [&]() -> task<> {
        ran = true;
        co_return;
      };
      EXPECT_EQ(code_on_another_thread([&] { g.go(job); }), errc::wrong_loop);
      EXPECT_EQ(code_on_another_thread([&] { (void)g.wait(); }), errc::wrong_loop);
      co_await g.wait();
    });
  });
  EXPECT_FALSE(ran);
}

TEST(group_threads, a_periodic_job_refuses_to_be_used_from_another_thread) {
  int runs = 0;
  weir::run([&]() -> task<> {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto job = [&]() -> task<> { co_return void(++runs); };
      auto start = [&] { (void)weir::start_every(s, 1ms, job); };
      EXPECT_EQ(code_on_another_thread(start), errc::wrong_loop);
      auto h = weir::start_every(s, 1h, job);
      EXPECT_EQ(code_on_another_thread([&] { h.stop(); }), errc::wrong_loop);
      EXPECT_EQ(code_on_another_thread([&] { (void)h.wait(); }), errc::wrong_loop);
      h.stop();
      co_await h.wait();
    });
  });
  EXPECT_EQ(runs, 0);
}

TEST(group_threads, the_handle_of_a_periodic_job_may_outlive_its_loop_and_die_elsewhere) {
  std::optional<weir::every_handle> kept;
  int runs = 0;
  weir::run([&]() -> task<> {
    auto job = [&]() -> task<> { co_return void(++runs); };
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      kept = weir::start_every(s, 1ms, job);
      co_await weir::sleep(5ms);
    });
  });
  EXPECT_GT(runs, 0);
  std::thread([&] {
    kept->stop();  // there is nothing left to stop
    kept.reset();
  }).join();
}
