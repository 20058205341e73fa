// SPDX-License-Identifier: MIT
// A pool: a fixed number of threads, and a bounded backlog that slows down its producers.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <system_error>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %3d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

task<> resize(int picture) {
  co_await weir::sleep(10ms);
  say("picture " + std::to_string(picture) + " is done");
}

// Two run, two wait in the queue. The fifth is not accepted until the first has ended: a producer
// is at most the pool's limit ahead.
task<> back_pressure() {
  auto produce = [](weir::pool& p) -> task<> {
    for (int picture = 1; picture <= 6; ++picture) {
      co_await p.submit([picture] { return resize(picture); });
      say("picture " + std::to_string(picture) + " is accepted");
    }
    co_await p.close();  // no new jobs; the accepted ones run to their end
    say("the pool is drained");
  };
  co_await weir::with_pool({.name = "pictures", .workers = 2, .queue_size = 2}, produce);
}

// `try_submit` does not wait: the caller decides what to do without room.
task<> shed_load() {
  auto produce = [](weir::pool& p) -> task<> {
    for (int picture = 1; picture <= 3; ++picture) {
      const std::error_code refused = p.try_submit([picture] { return resize(picture); });
      if (refused) say("picture " + std::to_string(picture) + ": " + refused.message());
    }
    try {
      co_await p.submit_for(5ms, [] { return resize(4); });
    } catch (const weir::timeout_error&) {
      say("picture 4: no room within 5 ms");
    }
  };  // a body that returns without close() drains as well
  co_await weir::with_pool({.name = "small", .workers = 1, .queue_size = 1}, produce);
}

// `run` waits for the job and returns its value or throws its error, which the pool then ignores.
task<> results() {
  auto body = [](weir::pool& p) -> task<> {
    const int sum = co_await p.run([] { return 40 + 2; });  // a plain function works, too
    say("the sum is " + std::to_string(sum));
    try {
      co_await p.run([]() -> task<> {
        co_await weir::sleep(1ms);
        throw std::runtime_error("not a picture");
      });
    } catch (const std::runtime_error& e) {
      say(e.what());
    }
  };
  co_await weir::with_pool({.name = "sums", .workers = 2}, body);
}

// Not fail-fast: the error of one job stops no other; the first one is thrown at the end.
task<> errors() {
  auto body = [](weir::pool& p) -> task<> {
    co_await p.submit([] { throw std::runtime_error("job 1 failed"); });
    co_await p.submit([] { return resize(2); });
    try {
      co_await p.close();
    } catch (const std::runtime_error& e) {
      say(e.what());
    }
  };
  co_await weir::with_pool({.name = "one", .workers = 1}, body);
}

task<> program() {
  std::puts("back-pressure");
  co_await back_pressure();
  std::puts("without waiting");
  co_await shed_load();
  std::puts("results");
  co_await results();
  std::puts("errors");
  co_await errors();
}

}  // namespace

int main() { weir::sim::run({}, program()); }
