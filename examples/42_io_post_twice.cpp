// SPDX-License-Identifier: MIT
// A retry that pays twice: found by `explore` on a simulated network, and fixed by a key.
#include <weir/http.hpp>
#include <weir/io.hpp>
#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include <cstdio>
#include <set>
#include <string>

using namespace std::chrono_literals;
using weir::task;
namespace http = weir::http;
namespace io = weir::io;
namespace sim = weir::sim;

namespace {

struct bank {
  int asked = 0;
  int paid = 0;
  std::set<std::string, std::less<>> known;  // keys of payments that were taken
};

task<http::response> take_payment(bank& b, http::request& r) {
  const std::string amount = co_await r.body();
  ++b.asked;
  const auto key = r.header("idempotency-key");
  const bool again = key && !b.known.emplace(*key).second;
  if (!again) b.paid += std::stoi(amount);
  co_return http::response(again ? 200 : 201);
}

task<> run_bank(bank& b) {
  http::router r;
  r.post("/payments", [&b](http::request& request) { return take_payment(b, request); });
  auto l = co_await io::listen({.port = 80});
  co_await http::serve(l, std::move(r), {.drain = 0s});
}

// The client itself never sends a POST twice. This retry does, if the connection breaks: perhaps
// after the bank has paid, and before its answer arrives.
task<> pay(const std::string& key) {
  http::client c({.timeout = 2s});
  http::headers fields;
  if (!key.empty()) fields.set("idempotency-key", key);
  auto post = [&]() -> task<> {
    const auto answer = co_await c.post("http://bank/payments", "10", fields);
    answer.raise_for_status();
  };
  co_await (weir::op(post) | weir::retry({.attempts = 3}).when(http::is_transient));
}

task<> break_connections(sim::world& w) {
  co_await weir::sleep(std::chrono::milliseconds(weir::random() % 200));
  w.network().reset("main", "bank");
}

task<> shop(sim::world& w, const std::string& key) {
  bank b;
  w.network().set({.latency = 10ms, .jitter = 20ms});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn_on(w.loop("bank"), [&] { return run_bank(b); });
    co_await weir::sleep(1s);
    s.spawn(break_connections(w));
    co_await pay(key);
    s.cancel();
  });
  sim::sometimes("it is asked twice", b.asked == 2);
  sim::always("the order is paid once", b.paid == 10);
}

sim::report search(const std::string& key) {
  auto program = [&](sim::world& w) { return shop(w, key); };
  return sim::explore({.runs = 500, .strategy = sim::random}, program);
}

}  // namespace

int main() {
  const sim::report without = search("");
  std::printf("without a key: %s\n", without.ok() ? "nothing found" : without.message().c_str());
  const sim::report with = search("order-7");
  std::printf("with a key: %s\n", with.ok() ? "nothing found" : with.message().c_str());
}
