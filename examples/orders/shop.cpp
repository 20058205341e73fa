// SPDX-License-Identifier: MIT
// The staff of the shop: a front that answers HTTP, a desk for approvals, and some that log what
// happens. A supervisor restarts them when they fail; what they must not lose is in the ledger and
// in the journal, not in their memory.
#include "shop.hpp"

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <weir/io.hpp>

#include "desk.hpp"
#include "front.hpp"
#include "stock.hpp"
#include "world.hpp"

namespace shop {

namespace durable = weir::durable;
namespace http = weir::http;
namespace io = weir::io;

// ------------------------------------------------------------------ the desk

approval_desk::approval_desk(back_office* office, durable::engine* e)
    : office_(*office), engine_(*e) {
  office_.book.enter("start", "desk");
  // Questions of an earlier life.
  for (const std::string& order : office_.book.orders())
    for (const entry& line : office_.book.lines_of(order))
      if (line.what == "ask" && !line.again) ask(order, line.detail);
}

void approval_desk::ask(std::string order, std::string awakeable) {
  awakeables_.emplace(std::move(order), std::move(awakeable));
}

weir::task<std::optional<bool>> approval_desk::answer(std::string order, bool yes) {
  const bool scenario = office_.with.door >= 0;
  if (scenario && !office_.book.has("stumble", "desk")) {  // once, to show a restart
    office_.book.enter("stumble", "desk");
    throw std::runtime_error("the desk has lost its glasses");
  }
  const auto found = awakeables_.find(order);
  if (found == awakeables_.end()) co_return std::nullopt;
  const bool first = co_await engine_.resolve(found->second, yes);  // durable on return
  const char* const said = yes ? "yes" : "no";
  if (first && office_.book.enter("answer", order, said)) office_.tell(order, "answer", said);
  co_return first;
}

void back_office::ask_for_approval(const order& o, const std::string& awakeable) {
  did("ask", o.id, awakeable);
  desk->cast(&approval_desk::ask, o.id, awakeable);
}

// ------------------------------------------------------------------ orders

weir::task<> back_office::take(durable::engine& e, order o) {
  o.packing = milliseconds(300ms) / with.hurry;
  did("submit", o.id, o.item);
  // A run has the id of its order: to start it twice is to attach to it.
  (void)co_await e.start<receipt>("checkout", {.id = o.id}, o);
}

std::vector<news> back_office::latest() const {
  constexpr std::size_t finished_max = 50;
  std::vector<news> all;
  const std::vector<std::string>& orders = book.orders();
  for (std::size_t i = 0; i < orders.size(); ++i) {
    if (book.has("close", orders[i]) && i + finished_max < orders.size()) continue;
    const entry& last = book.lines_of(orders[i]).back();
    all.push_back({last.order, last.what, last.detail});
  }
  return all;
}

namespace {

// ------------------------------------------------------------------ the others

/// Publishes the events of runs to all subscribers.
weir::task<> tell_news(back_office& office, durable::engine& e) {
  auto changes = e.events();
  while (auto change = co_await changes.next())
    office.tell(change->id, "run", to_string(change->state));
}

/// A subscriber that is too slow misses the oldest events, and reports it.
weir::task<> write_audit_log(back_office& office) {
  auto listening = office.events.subscribe({.overflow = weir::overflow::drop_oldest});
  std::ofstream out(office.with.dir / "audit.log", std::ios::app);
  while (auto item = co_await listening.next()) {
    if (listening.missed() > 0) out << "(" << listening.missed() << " missed)\n";
    out << item->order << ' ' << item->what << ' ' << item->detail << std::endl;
  }
}

/// A second subscriber, for the user who watches a shop that keeps running.
weir::task<> show_on_screen(back_office& office) {
  auto listening = office.events.subscribe({.overflow = weir::overflow::drop_oldest});
  while (auto item = co_await listening.next()) {
    std::printf("%s %s %s\n", item->order.c_str(), item->what.c_str(), item->detail.c_str());
    std::fflush(stdout);
  }
}

/// Where the shop listens: at the socket that it was given, at the port that the user wants, or at
/// 8080 or the next free one.
weir::task<io::listener> open_door(settings with) {
  if (with.door >= 0) co_return io::adopt_listener(with.door);
  const int last = with.port > 0 ? with.port : 8099;
  for (int port = with.port > 0 ? with.port : 8080;; ++port) {
    try {
      co_return co_await io::listen({.port = port});
    } catch (const weir::error& e) {
      if (port == last || e.code() != std::errc::address_in_use) throw;
    }
  }
}

/// A shop that nobody visits has a clerk who plays customers and the person at the desk, over HTTP
/// as everyone; he leaves time for an answer on the page.
weir::task<> play_customers(back_office& office, int port) {
  world_options options;
  options.port = port;
  options.first = 1;
  while (office.book.has("submit", id_of(options.first))) ++options.first;
  options.pace = office.with.pace;
  options.thinking = 6s;
  world customers(options);
  co_await customers.play();
}

weir::task<> work(back_office& office, durable::engine& e) {
  weir::supervisor staff({.name = "staff"});
  staff.add_task({.name = "audit"}, [&] { return write_audit_log(office); });
  staff.add_task({.name = "news"}, [&] { return tell_news(office, e); });
  office.desk =
      staff.add<approval_desk>({.name = "desk", .on_error = weir::on_error::crash}, &office, &e);
  co_await e.open();  // from here on, unfinished orders continue
  io::listener door = co_await open_door(office.with);
  staff.add_task({.name = "front"}, [&] {
    return http::serve(door, front(office, e), {.drain = 500ms, .name = "front"});
  });
  if (office.with.door < 0) {
    std::printf("http://127.0.0.1:%d/\n", door.port());
    staff.add_task({.name = "screen"}, [&] { return show_on_screen(office); });
    staff.add_task({.name = "clerk"}, [&] { return play_customers(office, door.port()); });
  }
  co_await staff.run();
}

}  // namespace

weir::task<> keep_shop(back_office& office) {
  const std::string journal = journal_of(office.with.dir).string();
  auto body = [&](durable::engine& e) -> weir::task<> {
    add_stock(e, office);
    e.add("checkout", [&office](order o) { return checkout(office, std::move(o), 1); });
    if (office.with.life != first_life)
      e.add("checkout", [&office](order o) { return checkout(office, std::move(o), 2); },
            {.version = 2});
    co_await work(office, e);
  };
  co_await durable::with_engine({.path = journal, .segment_bytes = 1 << 20}, body);
}

}  // namespace shop
