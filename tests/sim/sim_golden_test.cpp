// SPDX-License-Identifier: MIT
// The same seed gives the same run with every compiler, in every build: these texts are the same
// everywhere. A change of the scheduler may change them; then take them anew, from one build, and
// see that all others agree.
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "support/test_support.hpp"

namespace {

using namespace test_support;
using weir::task;
namespace sim = weir::sim;

task<> speak(std::string& log, char name) {
  for (int i = 0; i < 3; ++i) {
    log += name;
    if (weir::random() % 3 == 0) co_await weir::sleep(1ms);
    co_await weir::yield();
    co_await ready(1);
  }
}

/// Fibers, equal timers, random numbers, messages between loops and a disk that fails.
task<std::string> all_kinds_of_decisions(sim::world& w) {
  std::string log;
  w.disk().set({.short_write = 0.5});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (char name = 'a'; name < 'd'; ++name) s.spawn(speak(log, name));
    for (const char* name : {"x", "y"}) w.loop(name).post([&log, name] { log += *name; });
    auto file = w.disk().open("/log", weir::open_mode::create_new);
    const std::byte bytes[100] = {};
    log += std::to_string(file->pwrite(bytes, 0));
    co_return;
  });
  co_await weir::all(after(5ms, 1), after(5ms, 2), after(5ms, 3));
  co_return log;
}

std::string run_of(sim::strategy strategy, std::uint64_t seed) {
  return sim::run({.seed = seed, .strategy = strategy}, all_kinds_of_decisions);
}

std::string trace_of(sim::strategy strategy) {
  const auto report = sim::explore({.runs = 5000, .strategy = strategy, .max_steps = 1000},
                                   [](sim::world& w) -> task<> {
                                     const std::string log = co_await all_kinds_of_decisions(w);
                                     if (log.size() < 14 && log.find('b') < log.find('a'))
                                       throw boom(1);
                                   });
  return report.trace().text();
}

}  // namespace

TEST(golden, the_same_seed_gives_the_same_run_in_every_build) {
  EXPECT_EQ(run_of(sim::fifo, 1), "100abcxyacacbb");
  EXPECT_EQ(run_of(sim::random, 1), "100yaxbcaacbcb");
  EXPECT_EQ(run_of(sim::random, 2), "30caybcbbxaca");
  EXPECT_EQ(run_of(sim::pct(3), 1), "60ycxaaabbbcc");
  EXPECT_EQ(run_of(sim::pct(3), 2), "30aaxccybbbac");
}

TEST(golden, the_same_failure_has_the_same_trace_in_every_build) {
  EXPECT_EQ(trace_of(sim::random),
            "weir-trace 1 random seed=4 steps=1000 : f r7a01d79fc1d93784 3/7 r49fa730f02634930 7*1 "
            "6*2 5*2 4*1 raa956e386e3c896b 4*1 r2d84ef396b5715e 4*1 3*1 2*1 rd1e99f0e84775f4c "
            "rde5e5eb06fd97608 2*5 rd0e10e2623620db3 2*1 r904c50cf1e37e3c8 re16c84323fdb7857 "
            "r8ef9623667c00298 4*1 3*2 2*2 3*1 2*1 3*1 2*1");
  EXPECT_EQ(trace_of(sim::pct(2)),
            "weir-trace 1 pct(2) seed=3 steps=1000 : f ree4be687cd7b38b8 3/7 rb4d3ac742c023996 7*2 "
            "6*2 5*1 ra92a5b1494bbef27 5*1 rf9eb2eafa23e5ee7 5*1 4*1 3*1 2*2 rc8eaed2d02d5616f 2*2 "
            "r3789bbf6b92ef49 2*2 re3d86548a8ea7cdf 2*1 re9ab8d6f0d4afa3d 2*5 re609d8be65e82df9 "
            "2*1 r884cac58dc2251d 4*1 3*2 2*2 3*1 2*1 3*1 2*1");
  EXPECT_EQ(trace_of(sim::dfs(2)),
            "weir-trace 1 dfs(2) seed=0 steps=1000 : f r8f5520d52a7ead08 3/7 rc476a018caa1802d 7*2 "
            "6*2 5*1 r81de31c0d260469e 5*1 rbf658d7e065f3c2f 5*1 4*1 3*2 r913593fda1bca32a 3*1 2*2 "
            "rbb535e93941ba525 2*1 r5ecda415c3c6dfde rc487398fc9de9ae2 2*5 ra06746dbb57c4d62 2*1 "
            "r9d414196fdf05c8a 4*1 3*2 2*2 3*1 2*1 3*1 2*1");
}
