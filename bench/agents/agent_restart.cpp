// SPDX-License-Identifier: MIT
//
// An agent under a supervisor that crashes on its first message, which it has cast to itself: the
// throw, the end of the incarnation, the supervisor's decision, the next constructor. What a throw
// alone costs, with its catch, is measured in the same run and reported beside it.
#include <weir/weir.hpp>

#include <exception>
#include <stdexcept>

#include "support/measure.hpp"

namespace {

struct plan {
  std::int64_t left;
  weir::event over{};
};

class unlucky {
 public:
  explicit unlucky(plan* p) {
    if (p->left-- > 0) {
      weir::self<unlucky>().cast(&unlucky::boom);
    } else {
      p->over.set();
    }
  }
  [[noreturn]] void boom() { throw std::runtime_error("boom"); }
};

weir::task<double> restart_all(std::int64_t size) {
  plan p{size};
  weir::supervisor sup({.name = "sup", .max_restarts = size + 1, .within = std::chrono::hours(1)});
  sup.add<unlucky>({.name = "unlucky"}, &p);
  double cost = 0;
  co_await weir::with_scope([&](weir::scope& s) -> weir::task<> {
    const auto start = bench::clock::now();
    s.spawn(sup.run());
    co_await p.over.wait();
    cost = bench::nanoseconds_since(start) / static_cast<double>(size);
    co_await sup.stop();
  });
  co_return cost;
}

[[gnu::noinline]] void boom() { throw std::runtime_error("boom"); }

/// Catches as whoever keeps the error does, with a frame between.
[[gnu::noinline]] std::exception_ptr caught() {
  try {
    boom();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

double throw_all(std::int64_t size) {
  const auto start = bench::clock::now();
  for (std::int64_t i = 0; i < size; ++i) {
    auto error = caught();
    bench::keep(error);
  }
  return bench::nanoseconds_since(start) / static_cast<double>(size);
}

weir::task<> measure(std::int64_t size) {
  constexpr int rounds = 3;
  bench::samples all;
  bench::samples alone;
  for (int round = 0; round < rounds; ++round) {
    all.add(co_await restart_all(size));
    alone.add(throw_all(size));
  }
  bench::report("restart_all", size, all.median(), "ns");
  bench::report("throw_alone", size, alone.median(), "ns");
  bench::report("restart_net", size, all.median() - alone.median(), "ns");
}

}  // namespace

int main(int argc, char** argv) { weir::run(measure(bench::size_argument(argc, argv))); }
