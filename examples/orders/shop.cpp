// SPDX-License-Identifier: MIT
// The agents of the shop: a clerk that takes orders, a desk that approves them, and two that log
// what happens. A supervisor restarts them when they fail; what they must not lose is in the ledger
// and in the journal, not in their memory.
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "desk.hpp"
#include "shop.hpp"

namespace shop {

namespace durable = weir::durable;

// ------------------------------------------------------------------ the desk

approval_desk::approval_desk(back_office* office, durable::engine* e)
    : office_(*office), engine_(*e) {
  office_.book.enter("start", "desk");
  // Requests to an earlier life are read from the ledger.
  for (const entry& line : read_ledger(office_.book.file()))
    if (line.what == "ask" && !line.again && !office_.book.has("answer", line.order) &&
        !office_.book.has("close", line.order))
      review({line.order, line.detail});
}

// The desk handles the next request while this one is pending, so the answer is a message to
// itself. It is lost with this life of the desk; the next one reads the ledger again.
void approval_desk::review(approval_request request) {
  const story s = story_of(number_of(request.order));
  if (s == story::unanswered) return;
  weir::self<approval_desk>().cast_after(700ms / office_.with.hurry, &approval_desk::decide,
                                         std::move(request), s);
}

weir::task<> approval_desk::decide(approval_request request, story s) {
  if (!office_.book.has("stumble", "desk")) {  // once, to show a restart
    office_.book.enter("stumble", "desk");
    throw std::runtime_error("the desk has lost its glasses");
  }
  if (s == story::cancelled) {
    // The customer calls: the order is cancelled, wherever it is, and undoes what it did. If this
    // process dies before that is in the journal, the next desk does it again.
    engine_.cancel(request.order, change_of_mind(number_of(request.order)));
    co_return;
  }
  const bool yes = s == story::approved;
  // Durable on return. The first answer counts; a second one, after a crash, changes nothing.
  co_await engine_.resolve(request.awakeable, yes);
  office_.book.enter("answer", request.order);
}

void back_office::ask_for_approval(const order& o, const std::string& awakeable) {
  did("ask", o, awakeable);
  desk->cast(&approval_desk::review, approval_request{o.id, awakeable});
}

namespace {

// ------------------------------------------------------------------ the others

/// Takes orders. A run has the id of its order: to start it twice is to attach to it, so that the
/// clerk may begin again from the first one after every crash.
weir::task<> take_orders(back_office& office, durable::engine& e) {
  std::vector<durable::run_handle<receipt>> runs;
  const bool for_ever = office.with.orders == 0;
  for (int number = 1; for_ever || number <= office.with.orders; ++number) {
    const order o = make_order(number, office.with.hurry);
    if (for_ever && office.book.has("close", o.id)) continue;
    if (!office.book.has("submit", o.id)) {
      co_await weir::sleep(office.with.pace);
      office.book.enter("submit", o.id);
    }
    auto run = co_await e.start<receipt>("checkout", {.id = o.id}, o);
    if (!for_ever) runs.push_back(std::move(run));
  }
  // An order may end in any way; that it ends is what the clerk waits for.
  for (const auto& run : runs) (void)co_await weir::settle(run.result());
}

/// Publishes the events of runs to all subscribers.
weir::task<> tell_news(back_office& office, durable::engine& e) {
  auto changes = e.events();
  while (auto change = co_await changes.next())
    (void)office.events.try_emit({change->id, std::string(to_string(change->state))});
}

/// A subscriber that is too slow misses the oldest events, and reports it.
weir::task<> write_audit_log(back_office& office) {
  auto listening = office.events.subscribe({.overflow = weir::overflow::drop_oldest});
  std::ofstream out(office.with.dir / "audit.log", std::ios::app);
  while (auto item = co_await listening.next()) {
    if (listening.missed() > 0) out << "(" << listening.missed() << " missed)\n";
    out << item->order << ' ' << item->what << std::endl;
  }
}

/// A second subscriber, for the user who watches a shop that keeps running.
weir::task<> show_on_screen(back_office& office) {
  auto listening = office.events.subscribe({.overflow = weir::overflow::drop_oldest});
  while (auto item = co_await listening.next()) {
    std::printf("%s %s\n", item->order.c_str(), item->what.c_str());
    std::fflush(stdout);
  }
}

weir::task<> work(back_office& office, durable::engine& e) {
  weir::supervisor staff({.name = "staff", .auto_shutdown = weir::auto_shutdown::any_significant});
  staff.add_task({.name = "audit"}, [&] { return write_audit_log(office); });
  if (office.with.orders == 0)
    staff.add_task({.name = "screen"}, [&] { return show_on_screen(office); });
  staff.add_task({.name = "news"}, [&] { return tell_news(office, e); });
  office.desk = staff.add<approval_desk>({.name = "desk"}, &office, &e);
  // When the clerk has nothing left to do, the shop closes.
  staff.add_task({.name = "clerk", .restart = weir::restart::transient, .significant = true},
                 [&] { return take_orders(office, e); });
  co_await e.open();  // from here on, unfinished orders continue
  co_await staff.run();
}

}  // namespace

weir::task<> keep_shop(back_office& office) {
  const std::string journal = journal_of(office.with.dir).string();
  auto body = [&](durable::engine& e) -> weir::task<> {
    e.add("checkout", [&office](order o) { return checkout(office, std::move(o)); });
    co_await work(office, e);
  };
  co_await durable::with_engine({.path = journal, .segment_bytes = 1 << 20}, body);
}

}  // namespace shop
