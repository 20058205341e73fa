// SPDX-License-Identifier: MIT
// Many processes of all manners, cancelled at random moments: none is left, no descriptor is.
#include <filesystem>
#include <random>

#include "process_support.hpp"
#include "support/sanitizers.hpp"

using namespace weir_test;

namespace {

/// Polite, stubborn, hostile and short-lived ones.
io::command some_command(unsigned kind) {
  switch (kind % 9) {
    case 0:
      return io::command("true");
    case 1:
      return io::command("sleep", "1000");
    case 2:
      return io::command("yes");  // writes without end
    case 3:
      return io::command("cat").input(std::string(300'000, 'x'));
    case 4:
      return script("trap '' TERM; while :; do sleep 0.001; done");
    case 5:
      return script("exec <&- >&- 2>&-; sleep 1000");  // closes its pipes
    case 6:
      return io::command("sleep", "1000").input(std::string(300'000, 'x'));  // never reads
    case 7:
      return script("(trap '' TERM; exec sleep 1000) & exit 0");  // leaves a member behind
    default:
      return io::command("no-such-program-weir");
  }
}

struct storm {
  std::mt19937 random{42};
  int ended = 0;
  int cancelled = 0;
  int failed = 0;

  task<> one(unsigned kind) {
    const auto wait = std::chrono::microseconds(random() % 4000);
    const weir::duration grace = std::chrono::milliseconds(random() % 3);
    auto how = co_await weir::settle(weir::with_timeout(
        wait, io::process::run(some_command(kind), {.grace = grace, .max_output = 500'000})));
    if (how.is_value()) {
      ++ended;
    } else if (how.is_error() && holds<weir::timeout_error>(how.error())) {
      ++cancelled;
    } else {
      ++failed;  // too large, or not there
    }
  }
};

}  // namespace

TEST(process_storm, of_a_thousand_that_are_cancelled_at_random_moments_none_is_left) {
  const unsigned count = sanitized ? 300 : 1000;
  storm all;
  auto program = [&]() -> task<> {
    io::command slow("sleep", "1000");  // waits, which makes the reactor and its descriptors
    co_await weir::settle(weir::with_timeout(1ms, io::process::run(slow)));
    const std::size_t before = open_descriptors();
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      weir::counting_governor places(16);
      for (unsigned i = 0; i < count; ++i) {
        auto one = [&all, i, place = co_await places.acquire()]() { return all.one(i); };
        s.spawn(std::move(one));
      }
      co_await s.join();
    });
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(has_no_child());
  };
  weir::run(program);
  EXPECT_EQ(static_cast<unsigned>(all.ended + all.cancelled + all.failed), count);
  EXPECT_GT(all.cancelled, 0);
  EXPECT_GT(all.failed, 0);
}
