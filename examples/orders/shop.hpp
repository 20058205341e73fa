// SPDX-License-Identifier: MIT
// The shop: what one order goes through (checkout.cpp), and who works there (shop.cpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <weir/durable.hpp>
#include <weir/weir.hpp>

#include "ledger.hpp"
#include "order.hpp"
#include "providers.hpp"

namespace shop {

struct settings {
  std::filesystem::path dir;
  int life = 1;             ///< which process on this journal this is
  int orders = 0;           ///< how many are taken; 0: one after the other, for ever
  milliseconds pace{};      ///< between two orders
  int hurry = 1;            ///< everything takes so many times less time
  int dies_at_payment = 0;  ///< the process kills itself in the middle of this payment; 0: never
};

inline std::filesystem::path journal_of(const std::filesystem::path& dir) {
  return dir / "journal.weir";
}
inline std::filesystem::path ledger_of(const std::filesystem::path& dir) {
  return dir / "ledger.txt";
}

/// What happened, for whoever wants to know; nothing depends on it.
struct news {
  std::string order;
  std::string what;
};

struct approval_request {
  std::string order;
  std::string awakeable;  ///< the answer goes there
};

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

  void reserve(const order& o);
  void release(const order& o);
  void capture(const order& o, const authorization& a);
  void refund(const order& o);
  void ask_for_approval(const order& o, const std::string& awakeable);
  void ship(const order& o);
  void close(const order& o, const std::string& how);

 private:
  void did(std::string_view what, const order& o, std::string_view detail = {});
};

/// One order, from the reservation to the parcel. The durable handler: it goes on where it was,
/// whatever happens to the process.
weir::task<receipt> checkout(back_office& office, order o);

/// One process of the shop: opens the journal, goes on with every order that was not finished, and
/// takes new ones. Ends when all are finished, if there is an end.
weir::task<> keep_shop(back_office& office);

}  // namespace shop
