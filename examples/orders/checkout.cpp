// SPDX-License-Identifier: MIT
// One order, written as if processes did not crash.
#include <csignal>
#include <exception>

#include <unistd.h>

#include "shop.hpp"

namespace shop {

namespace {

/// A person decides: yes, no, or no answer while the customer waits.
weir::task<bool> approval(back_office& office, const order& o) {
  auto answer = weir::awakeable<bool>("approval");
  // The question is a step, so it is asked once. Its id is the same after a crash, so an answer
  // that was given meanwhile is not lost.
  co_await weir::step("ask for approval", [&] { office.ask_for_approval(o, answer.id()); });
  try {
    co_return co_await weir::with_timeout(o.patience, answer.wait());
  } catch (const weir::timeout_error&) {
    throw weir::terminal_error("nobody approved it in time");
  }
}

weir::task<authorization> authorize(back_office& office, const order& o) {
  const authorization a = co_await office.bank.authorize(o);
  // Terminal: a declined card is not asked again.
  if (!a.accepted) throw weir::terminal_error("card declined");
  co_return a;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// How the order ended, in the words of the ledger.
std::string ending(const weir::outcome_view& end, const receipt& r) {
  if (end.is_value()) return r.shipped ? "shipped" : "refused";
  if (end.is_error()) return "failed " + message_of(end.error());
  // The reason was passed down through scopes; the front of the chain is its origin.
  const weir::cancel_reason origin = end.reason().chain().front();
  return "cancelled " + std::string(to_string(origin.kind)) + ": " + origin.message;
}

}  // namespace

weir::task<receipt> checkout(back_office& office, order o, int version) {
  receipt r;
  r.order = o.id;
  // What was done is undone by defers, in reverse order: after a refusal, an error and a
  // cancellation alike, and also if the process dies while they run. Each is registered before what
  // it undoes, because a step that was interrupted may have been done; undoing nothing is harmless.
  auto work = [&](weir::scope& s) -> weir::task<> {
    s.defer([&](weir::outcome_view end) -> weir::task<> {
      const std::string how = ending(end, r);
      co_await weir::step("close", [&] { office.close(o, how); });
    });
    s.defer([&]() -> weir::task<> {
      if (!r.shipped) co_await weir::call<void>("stock/release", o.id, {.key = o.item});
    });
    co_await weir::call<void>("stock/reserve", o.id, {.key = o.item});

    // New in version 2. An order that was begun without it must not find it here when it goes on:
    // its journal has no such step. It stays with version 1, and new orders take version 2.
    if (version >= 2) co_await weir::step("check for fraud", [&] { office.check_for_fraud(o); });

    // A failing provider is tried again and again; attempts are counted over all crashes.
    const weir::step_options patient{.retry = {.attempts = 1000, .base = 50ms, .ceiling = 1s}};
    auto ask_providers = [&] { return authorize(office, o); };
    const authorization a = co_await weir::step("authorize", ask_providers, patient);
    r.provider = a.provider;
    s.defer([&]() -> weir::task<> {
      if (!r.shipped) co_await weir::step("refund", [&] { office.refund(o); });
    });
    co_await weir::step("capture", [&] { office.capture(o, a); });

    if (o.cents > approval_above_cents) {
      if (!co_await approval(office, o)) co_return;
    }
    co_await weir::sleep(o.packing);
    // Point of no return: a cancellation from here on must not refund a parcel that has
    // left.
    auto hand_over = [&]() -> weir::task<> {
      co_await weir::step("ship", [&] { office.ship(o); });
      r.shipped = true;
      co_await weir::call<void>("stock/hand_out", o.id, {.key = o.item});
    };
    co_await weir::shield(hand_over);
  };
  co_await weir::with_scope({.name = "checkout"}, work);
  co_return r;
}

// ------------------------------------------------------------------ what steps do to the world

void back_office::did(std::string_view what, const std::string& order, std::string_view detail) {
  if (!book.enter(what, order, detail)) return;
  tell(order, what, detail);
}

void back_office::check_for_fraud(const order& o) { did("check", o.id); }
void back_office::refund(const order& o) {
  if (book.has("capture", o.id)) did("refund", o.id);
}
void back_office::ship(const order& o) { did("ship", o.id, o.item); }
void back_office::close(const order& o, const std::string& how) { did("close", o.id, how); }

void back_office::capture(const order& o, const authorization& a) {
  did("capture", o.id, std::to_string(o.cents) + " by " + a.provider);
  // The worst moment to crash: the money has moved, and the journal has no record of it.
  if (++payments_made == with.dies_at_payment) ::kill(::getpid(), SIGKILL);
}

}  // namespace shop
