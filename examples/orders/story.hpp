// SPDX-License-Identifier: MIT
// What the world outside does with each order. A real shop does not know, and neither does this
// one; the customers act by it (world.cpp), and the report checks the shop by it.
#pragma once

#include <chrono>
#include <string>

#include "order.hpp"

namespace shop {

enum class story { plain, approved, declined, refused, unanswered, cancelled };

inline std::string id_of(int number) {
  const std::string digits = std::to_string(number);
  return "order-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

/// 0 if it is not an id that `id_of` has made.
inline int number_of(const std::string& id) {
  const std::string digits = id.substr(0, 6) == "order-" ? id.substr(6, 8) : std::string();
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  const int number = std::stoi(digits);
  return id_of(number) == id ? number : 0;
}

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
  const story s = story_of(number);
  if (s == story::declined) o.card = "expired";
  const bool expensive = s != story::plain && s != story::declined;
  o.cents = expensive ? 90'000 : 2'500 + number;
  // The others wait for their answer for an hour, so that no order depends on how fast this machine
  // is.
  using namespace std::chrono_literals;
  if (s == story::unanswered) o.patience = milliseconds(1500ms) / hurry;
  return o;
}

}  // namespace shop
