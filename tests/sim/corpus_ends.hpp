// SPDX-License-Identifier: MIT
// Bugs of ending: work continues after its cancellation, permits are not given back, closed objects
// are used.
#pragma once

#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "sim/corpus_quick_call.hpp"

namespace corpus {

// A flag that says "stop" is looked at before the await only.
// S1 | C1 C2 S2: the order is cancelled while its label is printed.
namespace missed_cancellation {

struct order {
  bool cancelled = false;
  bool shipped = false;
};
using shipper = weir::task<> (*)(order& o);

inline weir::task<> look_then_print(order& o) {
  if (o.cancelled) co_return;
  co_await quick_call();  // prints the label
  o.shipped = true;
}
inline weir::task<> print_then_look(order& o) {
  co_await quick_call();
  if (!o.cancelled) o.shipped = true;
}
inline weir::task<> cancel(order& o) {
  co_await quick_call();  // asks the customer again
  if (!o.shipped) o.cancelled = true;
}
inline weir::task<> ship_while_cancelling(shipper ship) {
  order o;
  co_await weir::all(ship(o), cancel(o));
  weir::sim::always("a cancelled order is not shipped", !(o.cancelled && o.shipped));
}
inline weir::task<> buggy() { return ship_while_cancelling(look_then_print); }
inline weir::task<> fixed() { return ship_while_cancelling(print_then_look); }

}  // namespace missed_cancellation

// A payment is shielded once it has begun. Whoever cancels it takes the request for the result.
// B1 P1 P2 | B2 P3: the customer cancels (B2) while the bank is asked.
namespace unwanted_commit {

inline weir::task<> charge(bool& charged) {
  co_await quick_call();  // the bank
  charged = true;
}
inline weir::task<> pay(bool& charged) {
  auto commit = [&] { return charge(charged); };
  co_await weir::shield(commit);
}
inline weir::task<> pay_and_cancel(bool asks_how_it_ended) {
  bool charged = false;
  bool cancelled = false;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto payment = s.spawn(pay(charged), {.name = "payment"});
    co_await weir::yield();  // the customer thinks again
    if (payment.done()) co_return;
    payment.cancel("changed my mind");
    cancelled = true;
    if (asks_how_it_ended) {
      const auto end = co_await weir::settle(payment);
      cancelled = end.is_cancelled();
    }
  });
  weir::sim::always("a cancelled payment is not charged", !(cancelled && charged));
}
inline weir::task<> buggy() { return pay_and_cancel(false); }
inline weir::task<> fixed() { return pay_and_cancel(true); }

}  // namespace unwanted_commit

// A connection is taken from a pool and given back after the query, but not if the query is
// cancelled.
// B1 R1 | B2 B3 R2: the client hangs up (B3) while the database is asked.
namespace leaked_connection {

using query = weir::task<> (*)(int& free_connections);

inline weir::task<> give_back_at_the_end(int& free_connections) {
  --free_connections;
  co_await quick_call();  // asks the database
  ++free_connections;
}
inline weir::task<> give_back_on_every_exit(int& free_connections) {
  --free_connections;
  auto give_back = weir::scope_exit([&] { ++free_connections; });
  co_await quick_call();
}
inline weir::task<> ask_and_hang_up(query ask) {
  int free_connections = 2;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    auto request = s.spawn(ask(free_connections), {.name = "request"});
    co_await weir::yield();
    co_await quick_call();  // reads from the socket
    request.cancel("the client hung up");
  });
  weir::sim::always("every connection is back", free_connections == 2);
}
inline weir::task<> buggy() { return ask_and_hang_up(give_back_at_the_end); }
inline weir::task<> fixed() { return ask_and_hang_up(give_back_on_every_exit); }

}  // namespace leaked_connection

// A session starts a helper in the scope of the server and stops it when it is done, but not if it
// is cancelled: then the helper, and so the server, never ends.
// B1 S1 | B2 H1 H2 S2: the client hangs up (B2) while it is served; the helper waits (H2) when the
// session ends (S2).
namespace leaked_child {

struct pings {
  weir::resumer<void> next;
  weir::task<> watch() {
    for (;;) co_await weir::suspend<void>([this](weir::resumer<void> r) { next = std::move(r); });
  }
};
using session = weir::task<> (*)(weir::scope& server, pings& from_client);

inline weir::task<> helper_in_the_server(weir::scope& server, pings& from_client) {
  auto helper = server.spawn(from_client.watch(), {.name = "helper"});
  co_await quick_call();  // serves
  helper.cancel("the session is over");
}
inline weir::task<> helper_of_its_own(weir::scope&, pings& from_client) {
  co_await weir::with_scope([&](weir::scope& own) -> weir::task<> {
    own.background(from_client.watch(), {.name = "helper"});
    co_await quick_call();
  });
}
inline weir::task<> serve_and_hang_up(session serve) {
  pings from_client;
  co_await weir::with_scope({.name = "server"}, [&](weir::scope& server) -> weir::task<> {
    auto one = server.spawn(serve(server, from_client), {.name = "session"});
    co_await weir::yield();
    one.cancel("the client hung up");
  });
}
inline weir::task<> buggy() { return serve_and_hang_up(helper_in_the_server); }
inline weir::task<> fixed() { return serve_and_hang_up(helper_of_its_own); }

}  // namespace leaked_child

// At shutdown the log is flushed and the file is closed, both at once.
// | C1 C2 F1 F2: the file is closed first.
namespace flush_after_close {

struct log_file {
  bool open = true;
  int buffered = 1;

  weir::task<> flush() {
    co_await quick_call();  // compresses
    weir::sim::always("nothing is written to a closed file", open);
    buffered = 0;
  }
  weir::task<> close() {
    co_await quick_call();  // writes the trailer
    open = false;
  }
};

inline weir::task<> buggy() {
  log_file file;
  co_await weir::all(file.flush(), file.close());
}
inline weir::task<> fixed() {
  log_file file;
  co_await file.flush();
  co_await file.close();
}

}  // namespace flush_after_close

}  // namespace corpus
