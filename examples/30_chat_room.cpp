// SPDX-License-Identifier: MIT
// A chat room: every member sees every message. A late member first sees the last two messages; a
// member that leaves is unsubscribed at once; one that does not read is disconnected.

#include <cstdio>
#include <string>
#include <utility>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

struct message {
  std::string from;
  std::string text;
};

class room {
 public:
  void tell(std::string from, std::string text) {
    std::printf("%s: %s\n", from.c_str(), text.c_str());
    messages_.try_emit({std::move(from), std::move(text)});
  }
  /// The room keeps four messages; a member that is further behind is disconnected.
  weir::subscription<message> enter() {
    return messages_.subscribe({.overflow = weir::overflow::disconnect, .replay = 2});
  }
  std::size_t people() const { return messages_.subscribers(); }
  void close() { messages_.close(); }

 private:
  weir::broadcast<message> messages_{4};
};

// A member holds a subscription, which ends on every way out of this function.
task<> listen(std::string who, room& r, weir::duration reads_for) {
  auto hears = r.enter();
  try {
    for (;;) {
      auto said = co_await hears.next();
      if (!said) break;
      if (said->from == who) continue;
      std::printf("    %s reads %s: %s\n", who.c_str(), said->from.c_str(), said->text.c_str());
      co_await weir::sleep(reads_for);
    }
    std::printf("    %s: the room is closed\n", who.c_str());
  } catch (const weir::error& e) {
    if (e.code() != weir::errc::lagged) throw;
    std::printf("    %s was put out\n", who.c_str());
  }
}

task<> evening() {
  room r;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(listen("ann", r, 1ms));
    auto ben = s.spawn(listen("ben", r, 1ms));
    co_await weir::sleep(10ms);
    r.tell("ann", "hello");
    r.tell("ben", "hello ann");
    r.tell("ben", "I must go");
    co_await weir::sleep(10ms);
    ben.cancel();
    co_await weir::sleep(10ms);
    std::printf("(%zu in the room)\n", r.people());
    s.spawn(listen("cleo", r, 1ms));
    s.spawn(listen("dan", r, 100ms));  // falls asleep over the first message
    co_await weir::sleep(10ms);
    for (int i = 1; i <= 5; ++i) {
      r.tell("ann", "news " + std::to_string(i));
      co_await weir::sleep(5ms);
    }
    r.close();
  });
}

}  // namespace

int main() { weir::sim::run({}, evening); }
