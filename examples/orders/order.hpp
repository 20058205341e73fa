// SPDX-License-Identifier: MIT
// What travels through the shop. Everything that the journal keeps is described, so that it can be
// stored as JSON.
#pragma once

#include <chrono>
#include <string>

#include <weir/durable/serde.hpp>

namespace shop {

using std::chrono::milliseconds;

/// What the world outside will do with an order. A real shop does not know; this one plays both
/// sides, so that its result can be checked.
enum class story { plain, approved, declined, refused, unanswered, cancelled };

struct order {
  std::string id;
  std::string item;
  int cents = 0;
  shop::story story = shop::story::plain;
  milliseconds patience{};  ///< how long the customer waits for an approval
  milliseconds packing{};
};
WEIR_DESCRIBE(order, id, item, cents, story, patience, packing)

/// What a payment provider says. A declined card is an answer too: the provider works.
struct authorization {
  std::string provider;
  bool accepted = false;
};
WEIR_DESCRIBE(authorization, provider, accepted)

struct receipt {
  std::string order;
  std::string provider;
  bool shipped = false;  ///< false: the approval was refused, and everything is undone
};
WEIR_DESCRIBE(receipt, order, provider, shipped)

/// Orders above this need the approval of a person.
constexpr int approval_above_cents = 50'000;

inline std::string id_of(int number) {
  const std::string digits = std::to_string(number);
  return "order-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

inline int number_of(const std::string& id) { return std::stoi(id.substr(id.find('-') + 1)); }

inline story story_of(int number) {
  switch (number % 10) {
    case 3:
      return story::declined;
    case 5:
      return story::approved;
    case 6:
      return story::refused;
    case 8:
      return number % 20 == 8 ? story::unanswered : story::plain;
    case 9:
      return story::cancelled;
    default:
      return story::plain;
  }
}

/// Why a customer cancels, in his own words.
inline std::string change_of_mind(int number) {
  return number % 20 == 9 ? "ordered twice" : "found it cheaper";
}

/// The order of this number. `hurry`: everything takes so many times less time.
inline order make_order(int number, int hurry) {
  order o;
  o.id = id_of(number);
  o.item = number % 2 == 0 ? "kettle" : "teapot";
  o.story = story_of(number);
  const bool expensive = o.story != story::plain && o.story != story::declined;
  o.cents = expensive ? 90'000 : 2'500 + number;
  // Whoever gets an answer would wait for it for an hour, so that no order depends on how fast this
  // machine is.
  using namespace std::chrono_literals;
  o.patience = o.story == story::unanswered ? milliseconds(1500ms) / hurry : milliseconds(1h);
  o.packing = milliseconds(300ms) / hurry;
  return o;
}

}  // namespace shop
