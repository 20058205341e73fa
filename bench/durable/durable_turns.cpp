// SPDX-License-Identifier: MIT
//
// Turns of a keyed object, 64 of them at any time, on `size` keys in turn: how many there are in a
// second, how long each of them takes and how often the disk is synced. A turn adds one to a stored
// number and gives the sum.
#include <weir/durable.hpp>
#include <weir/weir.hpp>

#include "support/counting_disk.hpp"
#include "support/latency.hpp"
#include "support/scratch.hpp"

namespace {

weir::task<int> add(int more) {
  weir::stored<int> sum("sum");
  const int now = (co_await sum.get()).value_or(0) + more;
  sum.set(now);
  co_return now;
}

struct load {
  weir::durable::engine& engine;
  std::int64_t keys;
  std::int64_t begun = 0;
  bench::run_times times{};
  bench::clock::time_point until{};
};

weir::task<> client(load& l) {
  while (bench::clock::now() < l.until) {
    const std::string key = std::to_string(l.begun++ % l.keys);
    const auto begun = bench::clock::now();
    const auto turn = co_await l.engine.start<int>("counter/add", {.key = key}, 1);
    co_await turn.result();
    l.times.add(begun, bench::clock::now());
  }
}

weir::task<> all_clients(load& l, bench::clock::duration for_so_long) {
  l.until = bench::clock::now() + for_so_long;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    for (std::int64_t i = 0; i < bench::turns_at_once; ++i) s.spawn(client(l));
    co_return;
  });
}

weir::task<> measure(std::int64_t keys, const std::string& path) {
  weir_test::counting_disk disk(weir::real_disk());
  auto body = [&](weir::durable::engine& e) -> weir::task<> {
    e.add_object("counter", {{"add", add}});
    co_await e.open();
    load l{e, keys};
    co_await all_clients(l, bench::warm_up);
    l.times.clear();
    const std::int64_t syncs = disk.syncs;
    const auto start = bench::clock::now();
    co_await all_clients(l, bench::run_for);
    const double elapsed = bench::nanoseconds_since(start) / 1000;
    l.times.report_turns(keys, elapsed, static_cast<double>(disk.syncs - syncs));
  };
  co_await weir::durable::with_engine({.path = path, .disk = &disk}, body);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::scratch here(argv[0]);
  weir::run(measure(bench::size_argument(argc, argv), here.path("journal")));
}
