// SPDX-License-Identifier: MIT
#include "world.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "front.hpp"

namespace shop {

namespace http = weir::http;

namespace {

/// No answer, or one that says that the server has failed: what was sent may have been done, and is
/// sent again. That is safe because every order has an id, and the first answer to a question
/// counts.
bool worth_another_attempt(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const http::status_error& e) {
    return e.status() >= 500;
  } catch (const std::exception&) {
    return http::is_transient(error);
  }
}

bool is_final(const std::string& state) {
  return state == "completed" || state == "failed" || state == "cancelled";
}

}  // namespace

world::world(const world_options& options)
    : with_(options), url_("http://127.0.0.1:" + std::to_string(options.port)) {}

weir::task<> world::play() {
  auto everyone = [&](weir::scope& s) -> weir::task<> {
    s.background(watch_approvals(), {.name = "person"});
    for (int i = 0; with_.orders == 0 || i < with_.orders; ++i) {
      if (with_.early > 0 && i == with_.early) co_await late_.wait();
      co_await weir::sleep(with_.pace);
      s.spawn(customer(with_.first + i), {.name = "customer"});
    }
  };
  co_await weir::with_scope({.name = "world"}, everyone);
}

weir::task<http::response> world::send(std::string method, std::string path, std::string body) {
  bool again = false;
  auto attempt = [&]() -> weir::task<http::response> {
    if (std::exchange(again, true)) ++sent_again_;
    http::response answer = co_await client_.request(method, url_ + path, body);
    answer.raise_for_status();
    co_return answer;
  };
  auto patient =
      weir::op(attempt) | weir::retry({.attempts = weir::unbounded, .base = 50ms, .ceiling = 500ms})
                              .when(worth_another_attempt);
  co_return co_await patient();
}

weir::task<int> world::left_of(std::string item) {
  const http::response answer = co_await send("GET", "/stock/" + item, "");
  co_return weir::from_json<int>(answer.body());
}

weir::task<> world::customer(int number) {
  const order o = make_order(number, with_.hurry);
  (void)co_await send("POST", "/orders", weir::to_json(o));
  std::string state;
  while (!is_final(state)) {
    co_await weir::sleep(milliseconds(300) / with_.hurry);
    const http::response answer = co_await send("GET", "/orders/" + o.id, "");
    state = weir::from_json<order_status>(answer.body()).state;
  }
}

/// The stream of events ends with the shop's process. A new one begins with what is known, so
/// nothing is missed.
weir::task<> world::watch_approvals() {
  auto at_the_desk = [&](weir::scope& desk) -> weir::task<> {
    auto follow = [&] { return follow_events(desk); };
    auto patient = weir::op(follow) |
                   weir::retry({.attempts = weir::unbounded, .base = 50ms, .ceiling = 500ms})
                       .when(worth_another_attempt);
    for (;;) co_await patient();
  };
  co_await weir::with_scope({.name = "desk"}, at_the_desk);
}

weir::task<> world::follow_events(weir::scope& desk) {
  http::incoming events = co_await client_.open("GET", url_ + "/events");
  events.raise_for_status();
  std::string text;
  while (auto piece = co_await events.next()) {
    text += *piece;
    for (std::size_t end = 0; (end = text.find("\n\n")) != std::string::npos;
         text.erase(0, end + 2))
      hear(desk, std::string_view(text).substr(0, end));
  }
}

void world::hear(weir::scope& desk, std::string_view event) {
  constexpr std::string_view mark = "data: ";
  const std::size_t data = event.find(mark);
  if (data == std::string_view::npos) return;  // a comment, which keeps the connection alive
  const news n = weir::from_json<news>(event.substr(data + mark.size()));
  // Orders of others, as of a user at the page, are answered by others.
  if (n.what != "ask" || number_of(n.order) == 0) return;
  if (asked_.insert(n.order).second) desk.spawn(decide(n.order), {.name = "decision"});
}

weir::task<> world::decide(std::string order) {
  co_await weir::sleep(with_.thinking);
  const int number = number_of(order);
  const story s = story_of(number);
  if (s == story::unanswered) co_return;
  // It may have been answered at the page, or its customer may have lost his patience, meanwhile.
  try {
    if (s == story::cancelled) {
      std::string why = change_of_mind(number);
      std::replace(why.begin(), why.end(), ' ', '+');
      (void)co_await send("DELETE", "/orders/" + order + "?why=" + why, "");
    } else {
      decision answer;
      answer.approved = s == story::approved;
      (void)co_await send("POST", "/approvals/" + order, weir::to_json(answer));
    }
  } catch (const http::status_error& e) {
    if (e.status() != 409) throw;
  }
  asked_.erase(order);  // asked again after a crash, it is answered again
}

}  // namespace shop
