// SPDX-License-Identifier: MIT
// Bugs of shared state: what was read before an await is no longer true after it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "sim/corpus_quick_call.hpp"

namespace corpus {

using namespace std::chrono_literals;

// A balance is read, somebody is asked, and what was read plus the amount is written.
// A1 | B1 B2 A2: both read before either writes.
namespace lost_update {

using depositor = weir::task<> (*)(int& balance, int amount);

inline weir::task<> deposit_what_was_read(int& balance, int amount) {
  const int before = balance;
  co_await quick_call();  // the audit log
  balance = before + amount;
}
inline weir::task<> deposit_at_once(int& balance, int amount) {
  co_await quick_call();
  balance += amount;
}
inline weir::task<> two_deposits(depositor deposit) {
  int balance = 0;
  co_await weir::all(deposit(balance, 10), deposit(balance, 20));
  weir::sim::always("both deposits are in the balance", balance == 30);
}
inline weir::task<> buggy() { return two_deposits(deposit_what_was_read); }
inline weir::task<> fixed() { return two_deposits(deposit_at_once); }

}  // namespace lost_update

// A seat is seen to be free, paid for, and taken. The second customer looks at the plan first.
// A1 | B1 B2 B3 A2: both have seen the free seat (A1, B2).
namespace check_then_act {

using seller = weir::task<> (*)(int& free_seats, bool looks_at_plan);

inline weir::task<> sell_then_take(int& free_seats, bool looks_at_plan) {
  if (looks_at_plan) co_await quick_call();
  if (free_seats == 0) co_return;
  co_await quick_call();  // the payment
  --free_seats;
  weir::sim::always("no seat is sold twice", free_seats >= 0);
}
inline weir::task<> take_then_sell(int& free_seats, bool looks_at_plan) {
  if (looks_at_plan) co_await quick_call();
  if (free_seats == 0) co_return;
  --free_seats;
  auto give_back = weir::scope_failure([&] { ++free_seats; });
  co_await quick_call();
  weir::sim::always("no seat is sold twice", free_seats >= 0);
}
inline weir::task<> two_customers(seller sell) {
  int free_seats = 1;
  co_await weir::all(sell(free_seats, false), sell(free_seats, true));
}
inline weir::task<> buggy() { return two_customers(sell_then_take); }
inline weir::task<> fixed() { return two_customers(take_then_sell); }

}  // namespace check_then_act

// A configuration of two fields is replaced field by field.
// R1 | C1 C2: a connection is made between the two writes.
namespace half_written_state {

struct endpoint {
  int host = 1;
  int port = 1;
};
using reloader = weir::task<> (*)(endpoint& shared);

inline weir::task<> reload_in_place(endpoint& shared) {
  shared.host = 2;
  co_await quick_call();  // asks for the port
  shared.port = 2;
}
inline weir::task<> reload_as_a_whole(endpoint& shared) {
  endpoint next;
  next.host = 2;
  co_await quick_call();
  next.port = 2;
  shared = next;
}
inline weir::task<> connect(const endpoint& shared) {
  co_await quick_call();  // waits for its turn in the connection queue
  weir::sim::always("host and port belong together", shared.host == shared.port);
}
inline weir::task<> reload_while_connecting(reloader reload) {
  endpoint shared;
  co_await weir::all(reload(shared), connect(shared));
}
inline weir::task<> buggy() { return reload_while_connecting(reload_in_place); }
inline weir::task<> fixed() { return reload_while_connecting(reload_as_a_whole); }

}  // namespace half_written_state

// A place in a vector is remembered over an await, while somebody erases an element before it.
// F1 | W1 W2 F2: the element has moved.
namespace stale_index {

struct order {
  int id;
  bool filled = false;
};
using order_book = std::vector<order>;
using filler = weir::task<> (*)(order_book& book, int id);

inline std::size_t place_of(const order_book& book, int id) {
  const auto is_it = [&](const order& o) { return o.id == id; };
  return static_cast<std::size_t>(std::find_if(book.begin(), book.end(), is_it) - book.begin());
}
inline void fill(order_book& book, std::size_t at, int id) {
  const bool right = at < book.size() && book[at].id == id;
  weir::sim::always("the order that was asked for is filled", right);
  book[at].filled = true;
}
inline weir::task<> find_then_ask(order_book& book, int id) {
  const std::size_t at = place_of(book, id);
  co_await quick_call();  // the price
  fill(book, at, id);
}
inline weir::task<> ask_then_find(order_book& book, int id) {
  co_await quick_call();
  fill(book, place_of(book, id), id);
}
inline weir::task<> withdraw(order_book& book, int id) {
  co_await quick_call();  // the owner's signature
  book.erase(book.begin() + static_cast<std::ptrdiff_t>(place_of(book, id)));
}
inline weir::task<> fill_while_withdrawing(filler fill_order) {
  order_book book{{1}, {2}};
  co_await weir::all(fill_order(book, 2), withdraw(book, 1));
}
inline weir::task<> buggy() { return fill_while_withdrawing(find_then_ask); }
inline weir::task<> fixed() { return fill_while_withdrawing(ask_then_find); }

}  // namespace stale_index

// A free list whose head is read, and replaced later if it is still the same. It may be the same
// head of another list: taken, its successor taken too, and given back.
// A1 A2 | B1 B2 B3 B4 B5 A3 A4 A5: a `take` is called in turn 1, reads in 2 and replaces in 3; the
// next is called in 3, reads in 4 and replaces in 5. While A holds on to "0, then 1" (A2), B takes
// 0 (B3), takes 1 and gives 0 back (B5); A takes 0 and makes 1 the head although B has it (A3), and
// takes that as well (A5).
namespace aba_free_list {

class pool {
 public:
  explicit pool(bool counts_changes) noexcept : counts_changes_(counts_changes) {}

  weir::task<std::size_t> take() {
    for (;;) {
      const std::size_t seen = head_;
      const std::size_t following = next_[seen];
      const int changes = changes_;
      co_await quick_call();  // clears the buffer
      if (head_ != seen || (counts_changes_ && changes_ != changes)) continue;
      head_ = following;
      ++changes_;
      weir::sim::always("no buffer has two owners", !std::exchange(taken_[seen], true));
      co_return seen;
    }
  }
  void give_back(std::size_t buffer) {
    taken_[buffer] = false;
    next_[buffer] = head_;
    head_ = buffer;
    ++changes_;
  }

 private:
  static constexpr std::size_t buffers = 5;
  bool counts_changes_;
  int changes_ = 0;
  std::size_t head_ = 0;
  std::array<std::size_t, buffers> next_{1, 2, 3, 4, 4};
  std::array<bool, buffers> taken_{};
};

inline weir::task<> take_two(pool& buffers) {
  (void)co_await buffers.take();
  (void)co_await buffers.take();
}
inline weir::task<> take_two_and_give_one_back(pool& buffers) {
  const std::size_t first = co_await buffers.take();
  (void)co_await buffers.take();
  buffers.give_back(first);
}
inline weir::task<> two_users(bool counts_changes) {
  pool buffers(counts_changes);
  co_await weir::all(take_two(buffers), take_two_and_give_one_back(buffers));
}
inline weir::task<> buggy() { return two_users(false); }
inline weir::task<> fixed() { return two_users(true); }

}  // namespace aba_free_list

// A promise written by hand. Both replicas answer at the same instant, and each looks whether the
// other was faster before it decodes, not after.
// After the sleeps, A1 | B1 B2 A2: both have looked before either completes.
namespace double_completion {

struct promise {
  bool answered = false;
  int completions = 0;
  weir::resumer<int> waiter;

  void complete(int value) {
    weir::sim::always("a request is answered once", ++completions == 1);
    answered = true;
    waiter.complete(value);
  }
};
using replica = weir::task<> (*)(promise& reply, int value);

inline weir::task<> look_then_decode(promise& reply, int value) {
  co_await weir::sleep(1ms);
  if (reply.answered) co_return;
  co_await quick_call();  // decodes
  reply.complete(value);
}
inline weir::task<> decode_then_look(promise& reply, int value) {
  co_await weir::sleep(1ms);
  co_await quick_call();
  if (!reply.answered) reply.complete(value);
}
inline weir::task<> ask_both(replica answer) {
  promise reply;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    s.spawn(answer(reply, 1));
    s.spawn(answer(reply, 2));
    (void)co_await weir::suspend<int>([&](weir::resumer<int> r) { reply.waiter = std::move(r); });
  });
}
inline weir::task<> buggy() { return ask_both(look_then_decode); }
inline weir::task<> fixed() { return ask_both(decode_then_look); }

}  // namespace double_completion

// A rate limit of one call a second. At the edge of a window each of two callers starts a new one,
// and the later forgets the call that the earlier one has counted.
// After the sleeps, A1 A2 | B1 B2 B3 A3: both see the old window (A2, B2) before either starts the
// new one.
namespace window_edge {

class limiter {
 public:
  explicit limiter(bool resets_first) : resets_first_(resets_first), start_(weir::now()) {}

  weir::task<bool> admit() {
    if (weir::now() - start_ >= 1s) {
      if (resets_first_) reset();
      co_await quick_call();  // reports the old window
      if (!resets_first_) reset();
    }
    co_return ++used_ <= 1;
  }

 private:
  void reset() {
    start_ = weir::now();
    used_ = 0;
  }
  bool resets_first_;
  weir::time_point start_;
  int used_ = 0;
};

inline weir::task<> call_at_the_edge(limiter& limit, int& admitted) {
  co_await weir::sleep(1s);
  const bool yes = co_await limit.admit();
  if (yes) ++admitted;
}
inline weir::task<> two_callers(bool resets_first) {
  limiter limit(resets_first);
  int admitted = 0;
  co_await weir::all(call_at_the_edge(limit, admitted), call_at_the_edge(limit, admitted));
  weir::sim::always("one call in a window", admitted == 1);
}
inline weir::task<> buggy() { return two_callers(false); }
inline weir::task<> fixed() { return two_callers(true); }

}  // namespace window_edge

// A token is checked, a connection is made, and the token is sent: at the very instant at which it
// expires and is renewed. Of the two timers the older one, the renewal's, goes first.
// Both sleep until 10 ms, | U1: the user goes before the renewal.
namespace expired_token {

struct token {
  weir::time_point expires;
  bool expired() const { return expires <= weir::now(); }
};
using user = weir::task<> (*)(token& cached);

inline weir::task<> check_then_connect(token& cached) {
  co_await weir::sleep(9ms);
  if (cached.expired()) co_return;
  co_await weir::sleep(1ms);  // connects
  weir::sim::always("no expired token is sent", !cached.expired());
}
inline weir::task<> connect_then_check(token& cached) {
  co_await weir::sleep(9ms);
  co_await weir::sleep(1ms);
  while (cached.expired()) co_await weir::sleep(1ms);
  weir::sim::always("no expired token is sent", !cached.expired());
}
inline weir::task<> renew(token& cached) {
  co_await weir::sleep(10ms);
  cached.expires = weir::now() + 10ms;
}
inline weir::task<> use_while_renewing(user use) {
  token cached{weir::now() + 10ms};
  co_await weir::all(renew(cached), use(cached));
}
inline weir::task<> buggy() { return use_while_renewing(check_then_connect); }
inline weir::task<> fixed() { return use_while_renewing(connect_then_check); }

}  // namespace expired_token

}  // namespace corpus
