// SPDX-License-Identifier: MIT
// The shop: what one order goes through (checkout.cpp), what is on its shelves (stock.cpp), who
// works there (shop.cpp), and how it is reached from outside (front.cpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/durable.hpp>
#include <weir/weir.hpp>

#include "ledger.hpp"
#include "order.hpp"
#include "providers.hpp"

namespace shop {

struct settings {
  std::filesystem::path dir;
  int life = 1;             ///< which process on this journal this is
  int orders = 0;           ///< how many the customers send
  milliseconds pace{};      ///< between two orders
  int hurry = 1;            ///< everything takes so many times less time
  int dies_at_payment = 0;  ///< the process kills itself in the middle of this payment; 0: never
  int door = -1;            ///< a listening socket that was inherited; -1: it opens its own, and
                            ///< has a clerk who plays the customers
  int port = 0;             ///< where it listens then; 0: 8080, or the next free one
};

inline std::filesystem::path journal_of(const std::filesystem::path& dir) {
  return dir / "journal.weir";
}
inline std::filesystem::path ledger_of(const std::filesystem::path& dir) {
  return dir / "ledger.txt";
}

class approval_desk;

/// What the orders of one process share. A durable run may use it inside of steps only: outside of
/// them it must do the same again when it is replayed, and all this could have changed by then.
struct back_office {
  explicit back_office(const settings& s)
      : with(s), book(ledger_of(s.dir), s.life), bank(s.hurry), events(1024) {}

  settings with;
  ledger book;
  payments bank;
  weir::broadcast<news> events;
  std::optional<weir::agent_ref<approval_desk>> desk;
  int payments_made = 0;

  /// Starts its run, or attaches to it if there is one: an order is taken once.
  weir::task<> take(weir::durable::engine& e, order o);
  /// The last thing that happened to each order, without those that are finished for long.
  std::vector<news> latest() const;
  void tell(const std::string& order, std::string_view what, std::string_view detail) {
    (void)events.try_emit({order, std::string(what), std::string(detail)});
  }

  void check_for_fraud(const order& o);
  void capture(const order& o, const authorization& a);
  void refund(const order& o);
  void ask_for_approval(const order& o, const std::string& awakeable);
  void ship(const order& o);
  void close(const order& o, const std::string& how);
  /// Something was done for an order: it is written to the ledger, once, and told.
  void did(std::string_view what, const std::string& order, std::string_view detail = {});
};

/// The first process of the scenario runs last month's program, which has only version 1 of
/// checkout; the second one runs today's, which has both.
constexpr int first_life = 1;

/// One order, from the reservation to the parcel. The durable handler: it goes on where it was,
/// whatever happens to the process, and with the version that it began with.
weir::task<receipt> checkout(back_office& office, order o, int version);

/// One process of the shop: opens the journal, goes on with every order that was not finished, and
/// takes new ones over HTTP until it is cancelled.
weir::task<> keep_shop(back_office& office);

}  // namespace shop
