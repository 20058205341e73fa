// SPDX-License-Identifier: MIT
// "Items' destructors may use the container they came from": an argument of a message that is
// evicted, refused or handled sends to the same agent when it is destroyed.
#include <functional>

#include "agent_support.hpp"
#include "toolkit/hostile_support.hpp"

using namespace weir_test;

namespace {

class hostile_keeper {
 public:
  void take(hostile) { ++taken_; }
  void plain(int) { ++taken_; }
  int taken() const { return taken_; }

 private:
  int taken_ = 0;
};

}  // namespace

TEST(message_destructor, sends_to_the_agent_whose_mailbox_drops_it) {
  for (const weir::overflow policy : {weir::overflow::drop_oldest, weir::overflow::drop_newest,
                                      weir::overflow::reject, weir::overflow::wait}) {
    for (const bool stops : {false, true}) {
      hostile::alive = 0;
      in_order([&]() -> task<> {
        std::function<void()> act;
        int left = 200;
        co_await weir::with_scope([&](weir::scope& s) -> task<> {
          weir::agent_options options;
          options.capacity = 3;
          options.overflow = policy;
          auto ref = weir::spawn_agent<hostile_keeper>(s, options);
          act = [&act, &left, stops, ref] {
            if (left-- <= 0) return;  // each would send the next for ever
            (void)ref.cast(&hostile_keeper::plain, 1);
            if (stops) (void)ref.cast(&hostile_keeper::take, hostile(&act));
          };
          for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 9; ++i) (void)ref.cast(&hostile_keeper::take, hostile(&act));
            co_await settled();
          }
          for (int i = 0; i < 9; ++i) (void)ref.cast(&hostile_keeper::take, hostile(&act));
          s.cancel();  // what is left is refused
        });
        act = nullptr;
      });
      EXPECT_EQ(hostile::alive, 0);
    }
  }
}

// A mailbox that drops the oldest holds its capacity, whatever what it drops does.
FIBER_TEST(message_destructor, does_not_fill_a_mailbox_above_its_capacity) {
  std::function<void()> act;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::agent_options options;
    options.capacity = 2;
    options.overflow = weir::overflow::drop_oldest;
    auto ref = weir::spawn_agent<hostile_keeper>(s, options);
    for (int i = 0; i < 2; ++i) (void)ref.cast(&hostile_keeper::take, hostile(&act));
    act = [ref] { (void)ref.cast(&hostile_keeper::plain, 1); };
    (void)ref.cast(&hostile_keeper::plain, 2);
    act = nullptr;
    const int taken = co_await ref.call(&hostile_keeper::taken);
    EXPECT_LE(taken, 2);
    s.cancel();
  });
}
