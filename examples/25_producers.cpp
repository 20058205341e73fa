// SPDX-License-Identifier: MIT
// Producers on other threads, one consumer: a channel. Each producer gets a copy of the sender; the
// channel ends when the last copy is destroyed. First real threads without loops, then loops that
// wait for room.

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) { std::printf("  %s\n", what.c_str()); }

struct measurement {
  std::size_t thread;
  int number;
};

constexpr std::size_t threads = 3;
constexpr int each = 10'000;

// A thread without a loop blocks until there is room. Once the receiver is gone, that throws.
void measure(weir::sender<measurement> out, std::size_t thread) {
  for (int number = 0; number < each; ++number) out.send_blocking({thread, number});
}  // `out` is destroyed here, and with the last sender the channel ends

// The order between threads is not specified; the values of one thread arrive in order.
task<> from_threads() {
  std::vector<std::jthread> producers;
  auto [out, in] = weir::channel<measurement>(64, {.name = "measurements"});
  for (std::size_t i = 0; i < threads; ++i) producers.emplace_back(measure, out, i);
  out = {};  // ours does not keep the channel open
  std::array<int, threads> seen{};
  bool in_order = true;
  for (;;) {
    auto next = co_await in.next();
    if (!next) break;
    in_order = in_order && next->number == seen[next->thread];
    ++seen[next->thread];
  }
  for (const int count : seen) say(std::to_string(count) + " values of one thread");
  say(in_order ? "each in order" : "out of order");
}

// Inside a loop, send() waits for room, first come, first served, and can be cancelled.
task<> send_names(weir::sender<std::string> out, std::string who) {
  for (int number = 1; number <= 3; ++number) {
    co_await out.send(who + " " + std::to_string(number));
  }
}

task<> from_loops() {
  auto [out, in] = weir::channel<std::string>(1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    weir::runtime rt(s, {.name = "producer", .threads = 2});
    s.spawn_on(rt.any(), send_names(out, "left"));
    s.spawn_on(rt.any(), send_names(out, "right"));
    out = {};
    auto print = [](std::string text) { say(text); };
    co_await (in.stream() | weir::for_each(print));
  });
}

task<> send_until_closed(weir::sender<std::string> out) {
  try {
    co_await send_names(std::move(out), "value");
  } catch (const weir::error& e) {
    say("the producer: " + e.code().message());
  }
}

// When the consumer drops its end, the sends of the producers fail.
task<> consumer_leaves() {
  auto [out, in] = weir::channel<std::string>(1);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(send_until_closed(std::move(out)));
    const auto first = co_await in.next();
    say("got " + *first);
    in = {};
  });
}

}  // namespace

int main() {
  std::puts("from threads");
  weir::run(from_threads());
  std::puts("from loops");
  weir::sim::run({}, from_loops);
  std::puts("the consumer leaves");
  weir::sim::run({}, consumer_leaves);
}
