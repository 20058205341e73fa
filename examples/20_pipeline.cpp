// SPDX-License-Identifier: MIT
// A pipeline of several steps, each an operation with its own policies, applied to many orders. The
// order of policies matters: left to right is from the innermost to the outermost.

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

struct order {
  int id;
  int weight = 0;
  std::string label;
};

/// Three services, each failing in a different way.
struct services {
  int catalogue_calls = 0;
  bool printer_works = true;

  task<int> weight(int id) {
    co_await weir::sleep(5ms);
    if (++catalogue_calls % 3 == 0) throw std::runtime_error("the catalogue is busy");
    co_return id * 100;
  }
  task<std::string> route(int weight) {
    co_await weir::sleep(weight > 300 ? 1h : 20ms);  // heavy ones are never answered
    co_return "by bicycle";
  }
  task<> print(const order& o) {
    co_await weir::sleep(5ms);
    if (!printer_works) throw std::runtime_error("out of paper");
    say("order " + std::to_string(o.id) + ": " + o.label);
  }
};

/// A policy is a value: made once, given a name, and applied to any number of operations.
class shipping {
 public:
  explicit shipping(services& s) : services_(s) {}

  task<> ship(order o) {
    auto weigh = weir::op([&] { return services_.weight(o.id); }) | patient_;
    o.weight = co_await weigh();
    auto find_route = weir::op([&] { return services_.route(o.weight); }) | weir::timeout(50ms) |
                      weir::fallback([] { return std::string("by lorry"); });
    o.label = co_await find_route();
    auto print = weir::op([&] { return services_.print(o); }) | weir::breaker(printer_) |
                 weir::trace("print");
    co_await print();
  }

 private:
  services& services_;
  weir::circuit_breaker printer_{{.name = "printer", .minimum_calls = 2, .open_for = 1min}};
  decltype(weir::timeout(1s) | weir::retry()) patient_ =
      weir::timeout(1s) | weir::retry({.attempts = 3, .base = 10ms, .jitter = weir::jitter::none});
};

task<> one_by_one(shipping& department, int first, int last) {
  for (int id = first; id <= last; ++id) {
    const auto shipped = co_await weir::settle([&] { return department.ship({id, 0, ""}); });
    if (!shipped.is_error()) continue;
    try {
      std::rethrow_exception(shipped.error());
    } catch (const weir::circuit_open_error& e) {
      say("order " + std::to_string(id) + ": not tried, again in " +
          std::to_string(e.retry_after() / 1s) + " s");
    } catch (const std::runtime_error& e) {
      say("order " + std::to_string(id) + ": " + e.what());
    }
  }
}

task<> program() {
  auto told = weir::on_event([](const weir::event_info& e) {
    if (e.name == "retry") say("attempt " + std::to_string(e.number) + " failed");
    if (e.name == "opened" || e.name == "half_opened" || e.name == "closed")
      say("printer: " + std::string(e.name));
  });
  services all;
  shipping department(all);
  std::puts("orders");
  co_await one_by_one(department, 1, 4);
  std::puts("out of paper");
  all.printer_works = false;
  co_await one_by_one(department, 1, 6);
  std::puts("a minute later");
  all.printer_works = true;
  co_await weir::sleep(1min);
  co_await one_by_one(department, 1, 1);
  say("printed " + std::to_string(weir::stats().counter("print", "value")) + ", failed " +
      std::to_string(weir::stats().counter("print", "error")));
}

}  // namespace

int main() { weir::sim::run({}, program()); }
