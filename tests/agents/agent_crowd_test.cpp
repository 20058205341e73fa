// SPDX-License-Identifier: MIT
// Many short-lived senders on several simulated loops: the results that they got agree with what
// was handled, in order per sender and within the capacity.
#include <algorithm>
#include <map>

#include "agent_support.hpp"

using namespace weir_test;
using weir::overflow;

namespace {

/// Takes numbers, one at a time; a number is its sender times 1000 and a rising one.
class measuring_clerk {
 public:
  measuring_clerk(numbers* taken, std::uint64_t* most) : taken_(taken), most_(most) {}
  task<int> take(int n) {
    EXPECT_FALSE(busy_) << "two handlers at once";
    busy_ = true;
    taken_->push_back(n);
    look();
    if (n % 2 == 0) co_await weir::yield();
    look();
    busy_ = false;
    co_return n;
  }

 private:
  void look() { *most_ = std::max(*most_, weir::self<measuring_clerk>().info().queued); }
  numbers* taken_;
  std::uint64_t* most_;
  bool busy_ = false;
};

/// What the senders were told. Loops are simulated on one thread, so it needs no lock.
struct accounts_of_crowd {
  numbers taken, accepted;
  std::uint64_t most = 0;
  int odd_errors = 0;
};

void note_answer(accounts_of_crowd& book, int n, const std::error_code& code, bool may_end) {
  if (!code) book.accepted.push_back(n);
  const bool expected = !code || code == errc::mailbox_full ||
                        (may_end && (code == errc::agent_stopped || code == errc::loop_gone));
  if (!expected) ++book.odd_errors;
}

/// A send is told when it is accepted and not when it is handled, so only calls count if the agent
/// may end early.
task<> send_in_turn(agent_ref<measuring_clerk> to, int who, int count, bool may_end,
                    accounts_of_crowd& book) {
  for (int i = 1; i <= count; ++i) {
    const int n = who * 1000 + i;
    const auto choice = weir::random() % 3;
    if (choice == 0 && !may_end) {
      if (to.cast(&measuring_clerk::take, n) == sent::enqueued) book.accepted.push_back(n);
    } else if (choice == 1 && !may_end) {
      const std::error_code code = co_await code_of_send(to, &measuring_clerk::take, n);
      note_answer(book, n, code, may_end);
    } else {
      const std::error_code code = co_await code_of_call(to, &measuring_clerk::take, n);
      note_answer(book, n, code, may_end);
    }
    co_await weir::yield();
  }
}

void check_accounts(const accounts_of_crowd& book, const weir::agent_info& end,
                    std::int64_t capacity) {
  std::map<int, int> last;
  for (int n : book.taken) {
    EXPECT_GT(n % 1000, last[n / 1000]) << "out of order, or twice";
    last[n / 1000] = n % 1000;
  }
  for (int n : book.accepted) EXPECT_EQ(counted_in(book.taken, n), 1) << n << " was accepted";
  EXPECT_EQ(book.odd_errors, 0);
  EXPECT_LE(book.most, static_cast<std::uint64_t>(capacity));
  EXPECT_EQ(end.handled, book.taken.size());
  EXPECT_EQ(end.queued, 0U);
}

/// Senders on three loops, some of which are cancelled; the agent may be stopped meanwhile.
task<> run_crowd(overflow how, bool stops, accounts_of_crowd& book) {
  const auto capacity = 1 + static_cast<std::int64_t>(weir::random() % 2);
  std::optional<agent_ref<measuring_clerk>> a;
  co_await weir::with_scope([&](weir::scope& outer) -> task<> {
    const weir::loop_thread one(outer, {.name = "one"});
    const weir::loop_thread two(outer, {.name = "two"});
    auto inside = [&](weir::scope& s) -> task<> {
      weir::agent_options options;
      options.name = "clerk";
      options.capacity = capacity;
      options.overflow = how;
      options.on = one;
      a = weir::spawn_agent<measuring_clerk>(s, options, &book.taken, &book.most);
      std::vector<weir::child<void>> all;
      for (int who = 1; who <= 5; ++who) {
        const weir::loop_ref from = who % 3 == 1   ? one.ref()
                                    : who % 3 == 2 ? two.ref()
                                                   : weir::this_loop();
        all.push_back(s.spawn_on(from, send_in_turn(*a, who, 3, stops, book)));
      }
      for (auto i = weir::random() % 12; i > 0; --i) co_await weir::yield();
      for (auto& sender : all)
        if (weir::random() % 3 == 0) sender.cancel();
      if (stops) co_await a->stop();
      for (auto& sender : all) co_await weir::settle(sender);
    };
    co_await weir::with_scope(inside);
  });
  check_accounts(book, a->info(), capacity);
}

}  // namespace

TEST(agent_crowd, on_three_loops_that_comes_and_goes_agrees_with_what_is_handled) {
  for (const overflow how : {overflow::wait, overflow::reject, overflow::drop_newest}) {
    in_every_order([&]() -> task<> {
      accounts_of_crowd book;
      co_await run_crowd(how, false, book);
    });
  }
}

TEST(agent_crowd, that_the_agent_stops_under_is_told_the_truth) {
  for (const overflow how : {overflow::wait, overflow::reject}) {
    in_every_order([&]() -> task<> {
      accounts_of_crowd book;
      co_await run_crowd(how, true, book);
    });
  }
}
