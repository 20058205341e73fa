// SPDX-License-Identifier: MIT
#include "front.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "desk.hpp"

namespace shop {

namespace {

namespace durable = weir::durable;
namespace http = weir::http;

using answer = weir::task<http::response>;

http::response json(int status, std::string text) {
  return http::response(status, std::move(text)).set("content-type", "application/json");
}

std::optional<order_status> status_of(back_office& office, const durable::engine& e,
                                      const std::string& id) {
  const std::optional<durable::run_info> run = e.get(id);
  if (!run) return std::nullopt;
  order_status status;
  status.id = id;
  status.state = to_string(run->state);
  for (const entry& line : office.book.lines_of(id))
    if (!line.again) status.happened.push_back({line.at_ms, line.life, line.what, line.detail});
  return status;
}

/// The ledger has one line for each effect, so what goes there has no line breaks.
bool is_phrase(std::string_view text) {
  const auto control = [](unsigned char c) { return std::iscntrl(c) != 0; };
  return !text.empty() && text.size() <= 100 && std::none_of(text.begin(), text.end(), control);
}

/// Why an order cannot be taken; empty if it can. Whatever comes from outside is checked here,
/// once.
std::string objection(const order& o) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  if (o.id.empty() || o.id.size() > 64 || !std::all_of(o.id.begin(), o.id.end(), plain))
    return "id: 1 to 64 letters, digits, '-' or '_' are expected";
  if (!is_phrase(o.item)) return "item: 1 to 100 characters are expected";
  if (o.cents < 1 || o.cents > 10'000'000) return "cents: a price up to 10000000 is expected";
  if (o.patience < 0ms || o.patience > 24h)
    return "patience: milliseconds up to a day are expected";
  return {};
}

/// The id is the customer's, and the run has it: a customer who got no answer because the process
/// was killed posts the order again, and attaches to the run that goes on.
answer take_order(back_office& office, durable::engine& e, http::request& r) {
  const std::string text = co_await r.body();
  order o;
  try {
    o = weir::from_json<order>(text);
  } catch (const weir::error& bad) {
    co_return http::response(400, bad.what());
  }
  if (std::string why = objection(o); !why.empty()) co_return http::response(400, std::move(why));

  const bool known = e.get(o.id).has_value();
  co_await office.take(e, o);
  co_return json(known ? 200 : 202, weir::to_json(*status_of(office, e, o.id)))
      .set("location", "/orders/" + o.id);
}

answer show_order(back_office& office, durable::engine& e, http::request& r) {
  const std::string id(r.param("id"));
  const std::optional<order_status> status = status_of(office, e, id);
  if (!status) co_return http::response(404, "no such order");
  co_return json(200, weir::to_json(*status));
}

/// Its run is cancelled, wherever it is, and undoes what it did.
answer cancel_order(durable::engine& e, http::request& r) {
  const std::string id(r.param("id"));
  if (!e.get(id)) co_return http::response(404, "no such order");
  const std::string why = r.query("why").value_or("no reason given");
  if (!is_phrase(why)) co_return http::response(400, "why: 1 to 100 characters are expected");
  if (!e.cancel(id, why)) co_return http::response(409, "the order is finished");
  co_return http::response(202, "being cancelled");
}

/// Durable when it is answered. The first answer counts; a second one, after a crash, changes
/// nothing. If the desk fails, its error is the answer, as 500, and the person tries again.
answer answer_approval(back_office& office, http::request& r) {
  const std::string id(r.param("id"));
  const std::string text = co_await r.body();
  decision given;
  try {
    given = weir::from_json<decision>(text);
  } catch (const weir::error& bad) {
    co_return http::response(400, bad.what());
  }
  const std::optional<bool> first =
      co_await office.desk->call(&approval_desk::answer, id, given.approved);
  if (!first) co_return http::response(404, "nobody waits for an answer about this order");
  co_return http::response(200, *first ? "thank you" : "it was answered before, or is finished");
}

/// Asks the object, beside the turns of the orders.
answer show_stock(durable::engine& e, http::request& r) {
  const std::string item(r.param("item"));
  if (!is_phrase(item)) co_return http::response(400, "item: 1 to 100 characters are expected");
  auto asked = co_await e.start<int>("stock/level", {.key = item});
  const int left = co_await asked.result();
  co_return json(200, weir::to_json(left));
}

http::event event_of(const news& n) { return http::event("order", weir::to_json(n)); }

/// What is known comes first, so that a client who connects again has missed nothing. One that is
/// too slow loses the oldest news, and is told everything again.
weir::stream<http::event> tell_everything(back_office& office) {
  auto listening = office.events.subscribe({.overflow = weir::overflow::drop_oldest});
  std::vector<news> known = office.latest();
  for (const news& n : known) co_yield event_of(n);
  while (auto n = co_await listening.next()) {
    if (listening.missed() > 0) {
      known = office.latest();
      for (const news& again : known) co_yield event_of(again);
    }
    co_yield event_of(*n);
  }
}

answer show_events(back_office& office) {
  co_return http::response::events(tell_everything(office));
}

answer show_page() {
  co_return http::response(200, std::string(page()))
      .set("content-type", "text/html; charset=utf-8");
}

}  // namespace

http::router front(back_office& office, durable::engine& e) {
  http::router routes;
  routes.get("/", [](http::request&) { return show_page(); });
  routes.post("/orders", [&](http::request& r) { return take_order(office, e, r); });
  routes.get("/orders/{id}", [&](http::request& r) { return show_order(office, e, r); });
  routes.del("/orders/{id}", [&](http::request& r) { return cancel_order(e, r); });
  routes.post("/approvals/{id}", [&](http::request& r) { return answer_approval(office, r); });
  routes.get("/stock/{item}", [&](http::request& r) { return show_stock(e, r); });
  routes.get("/events", [&](http::request&) { return show_events(office); });
  return routes;
}

}  // namespace shop
