// SPDX-License-Identifier: MIT
// Agents among other fibers: a full mailbox does not starve them, and a slow handler is visible in
// the dump. Counted, not timed.
#include "agent_support.hpp"

using namespace weir_test;

namespace {

constexpr long message_count = 1'000'000;
constexpr long most_in_a_row = 1'024;  // messages that may be handled while a ready fiber waits

/// Counts the turns of others between its messages.
class glutton {
 public:
  explicit glutton(const long* turns) : turns_(turns) {}
  void eat() {
    ++eaten_;
    if (*turns_ != seen_) eaten_since_ = 0;
    seen_ = *turns_;
    most_ = std::max(most_, ++eaten_since_);
  }
  long eaten() const { return eaten_; }
  long most() const { return most_; }

 private:
  const long* turns_;
  long seen_ = 0;
  long eaten_ = 0;
  long eaten_since_ = 0;
  long most_ = 0;
};

}  // namespace
FIBER_TEST(agent_fairness, a_million_queued_messages_do_not_starve_a_sibling) {
  long turns = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto g = weir::spawn_agent<glutton>(s, {.name = "glutton"}, &turns);
    for (long i = 0; i < message_count; ++i) g.cast(&glutton::eat);
    auto sibling = s.spawn([&]() -> task<> {
      for (;;) {
        ++turns;
        co_await weir::yield();
      }
    });
    EXPECT_EQ(co_await g.call(&glutton::eaten), message_count);
    sibling.cancel();
    EXPECT_GE(turns, message_count / most_in_a_row);
    EXPECT_LE(co_await g.call(&glutton::most), most_in_a_row);
  });
}

FIBER_TEST(agent_fairness, a_million_queued_messages_do_not_starve_another_agent_or_a_timer) {
  long turns = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto g = weir::spawn_agent<glutton>(s, {.name = "glutton"}, &turns);
    auto c = weir::spawn_agent<counter>(s, {.name = "c"}, 7);
    for (long i = 0; i < message_count; ++i) g.cast(&glutton::eat);
    EXPECT_EQ(co_await c.call(&counter::get), 7);
    EXPECT_GT(g.info().queued, 900'000U);
    co_await weir::with_timeout(1h, g.call(&glutton::eat));
  });
}

TEST(agent_fairness, two_agents_that_cast_to_themselves_for_ever_let_others_work) {
  class restless {
   public:
    void again() { weir::self<restless>().cast(&restless::again); }
  };
  in_every_order([]() -> task<> {
    int done = 0;
    co_await weir::with_scope(grace_of(0ms), [&](weir::scope& s) -> task<> {
      for (int i = 0; i < 2; ++i) weir::spawn_agent<restless>(s, {}).cast(&restless::again);
      for (int i = 0; i < 5; ++i) {
        co_await weir::yield();
        ++done;
      }
    });
    EXPECT_EQ(done, 5);
  });
}

// ------------------------------------------------------------------ what the dump shows

namespace {

/// The line of the dump that has this text, or all of it.
std::string line_with(std::string_view part) {
  const std::string all = dump_text();
  std::size_t begin = 0;
  while (begin < all.size()) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    const std::string line = all.substr(begin, end - begin);
    if (contains(line, part)) return line;
    begin = end + 1;
  }
  return all;
}

}  // namespace

SCOPE_TEST(agent_dump, shows_a_running_handler_with_the_name_and_the_queue_of_its_agent) {
  auto c = weir::spawn_agent<counter>(s, {.name = "clerk"});
  c.cast(&counter::nap, 1min);
  for (int i = 0; i < 37; ++i) c.cast(&counter::inc, 1);
  co_await settled();
  const std::string line = line_with("clerk");
  EXPECT_TRUE(contains(line, "37")) << line;
  EXPECT_TRUE(contains(dump_text(), "sleep")) << dump_text();
}

SCOPE_TEST(agent_dump, shows_who_waits_for_whom) {
  auto c = weir::spawn_agent<counter>(
      s, {.name = "clerk", .capacity = 1, .overflow = weir::overflow::wait});
  c.cast(&counter::nap, 10ms);
  co_await settled();
  auto customer = s.spawn(c.call(&counter::get), {.name = "customer"});
  co_await settled();
  auto pusher = s.spawn(c.send(&counter::inc, 1), {.name = "pusher"});
  co_await settled();
  const std::string calls = line_with("customer");
  EXPECT_TRUE(contains(calls, "clerk")) << calls;
  const std::string sends = line_with("pusher");
  EXPECT_TRUE(contains(sends, "clerk")) << sends;
  co_await customer;
  co_await pusher;
}

SCOPE_TEST(agent_dump, shows_idle_agents_by_name) {
  auto c = weir::spawn_agent<counter>(s, {.name = "sleeper"});
  co_await settled();
  EXPECT_TRUE(contains(dump_text(), "sleeper")) << dump_text();
  co_await c.stop();
  EXPECT_FALSE(contains(dump_text(), "sleeper")) << dump_text();
}
