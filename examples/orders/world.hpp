// SPDX-License-Identifier: MIT
// The world outside of the shop: customers who order and wait, and a person who answers approvals.
// All that they know of the shop comes over HTTP.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include <weir/http.hpp>
#include <weir/weir.hpp>

#include "story.hpp"

namespace shop {

struct world_options {
  int port = 0;
  int first = 1;            ///< the number of the first order
  int orders = 0;           ///< how many; 0: without end
  int early = 0;            ///< so many are sent before `late_ones_come`; 0: all of them
  milliseconds pace{};      ///< between two orders
  milliseconds thinking{};  ///< how long the person takes for an answer
  int hurry = 1;            ///< everything takes so many times less time
};

class world {
 public:
  explicit world(const world_options& options);

  /// Ends when every customer has seen the end of his order.
  weir::task<> play();
  /// The rest of the customers may come.
  void late_ones_come() { late_.set(); }
  /// How many of an item the shop has left.
  weir::task<int> left_of(std::string item);
  /// How often something was sent again, because the answer did not come.
  int sent_again() const noexcept { return sent_again_; }

 private:
  weir::task<> customer(int number);
  weir::task<> watch_approvals();
  weir::task<> follow_events(weir::scope& desk);
  void hear(weir::scope& desk, std::string_view event);
  weir::task<> decide(std::string order);
  weir::task<weir::http::response> send(std::string method, std::string path, std::string body);

  world_options with_;
  std::string url_;
  weir::http::client client_;
  std::set<std::string> asked_;  // orders that the person is thinking about
  weir::event late_;
  int sent_again_ = 0;
};

}  // namespace shop
