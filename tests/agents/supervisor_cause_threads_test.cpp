// SPDX-License-Identifier: MIT
// supervisor: on real threads, too, what leaves the scope of a supervisor that gives up is its
// restart_limit_error, "never the "has ended" of an agent that it took down".
#include <atomic>

#include "support/sanitizers.hpp"

#include "supervisor_support.hpp"

using namespace supervisor_test;

namespace {

constexpr int crash_rounds = test_support::sanitized ? 30 : 200;

struct fragile {
  void crash(int n) { throw boom(n); }
  int get() const { return 7; }
};

task<> client(weir::agent_ref<fragile> whom) {
  for (;;) (void)co_await whom.call(&fragile::get);
}

task<> one_round(const weir::runtime& threads, std::uint64_t round) {
  weir::supervisor sup({.name = "root", .max_restarts = 0});
  std::vector<weir::agent_ref<fragile>> agents;
  for (std::size_t i = 0; i < threads.size(); ++i)
    agents.push_back(sup.add<fragile>({.on = threads.at(i)}));
  auto out = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run());
    for (std::size_t i = 0; i < agents.size(); ++i)
      s.spawn_on(threads.at((i + round) % threads.size()), client(agents[i]));
    for (const auto& a : agents) s.spawn(client(a));
    EXPECT_EQ(co_await agents[0].call(&fragile::get), 7);
    (void)agents[round % agents.size()].cast(&fragile::crash, 1);
    co_await weir::sleep(1h);
  }));
  EXPECT_TRUE(out.is_error() && holds<weir::restart_limit_error>(out.error()))
      << (out.is_error() ? what_of(out.error()) : "no error");
}

}  // namespace

TEST(supervisor_cause_threads, the_cause_always_leaves_the_scope) {
  std::atomic<int> crashes{0};
  auto all = weir::on_event(weir::all_loops, [&](const weir::event_info& e) {
    if (e.name == "crash" && boom_of(e.error) == 1) ++crashes;
  });
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& s) -> task<> {
      weir::runtime threads(s, {.name = "threads", .threads = 3});
      for (std::uint64_t i = 0; i < crash_rounds; ++i) co_await one_round(threads, i);
    });
  });
  EXPECT_EQ(crashes, crash_rounds);
}

// The supervisor on another thread than the scope that waits for it.
TEST(supervisor_cause_threads, also_of_a_supervisor_on_another_thread) {
  weir::run([]() -> task<> {
    co_await weir::with_scope([](weir::scope& outer) -> task<> {
      weir::runtime threads(outer, {.name = "threads", .threads = 2});
      for (int i = 0; i < crash_rounds; ++i) {
        auto out = co_await weir::settle(weir::with_scope([&](weir::scope& s) -> task<> {
          auto [out_end, in_end] = weir::channel<weir::agent_ref<fragile>>(1);
          auto services = [to = std::move(out_end), on = threads.at(1)]() mutable -> task<> {
            weir::supervisor sup({.name = "root", .max_restarts = 0});
            auto a = sup.add<fragile>({.name = "a", .on = on});
            (void)sup.add<fragile>({.name = "b"});
            (void)to.try_send(a);
            co_await sup.run();
          };
          s.spawn(weir::on(threads.at(0), std::move(services)));
          auto a = co_await in_end.next();
          s.spawn(client(*a));
          (void)a->cast(&fragile::crash, 1);
          co_await weir::sleep(1h);
        }));
        EXPECT_TRUE(out.is_error() && holds<weir::restart_limit_error>(out.error()))
            << (out.is_error() ? what_of(out.error()) : "no error");
      }
    });
  });
}
