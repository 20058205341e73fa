// SPDX-License-Identifier: MIT
// An agent: any class whose member functions are called by message, one at a time. Its members need
// no lock, because no other code accesses them.

#include <cstdio>
#include <stdexcept>
#include <string>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %3d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

// Nothing in it knows that it is an agent.
class counter {
 public:
  explicit counter(int start = 0) : count_(start) {}

  void add(int n) { count_ += n; }
  int get() const { return count_; }
  int divide(int by) {
    if (by == 0) throw std::domain_error("divided by zero");
    return count_ /= by;
  }
  // A handler may wait. The next message is not handled before it has returned, so the count
  // cannot change between its two lines.
  task<int> add_slowly(int n) {
    co_await weir::sleep(20ms);
    co_return count_ += n;
  }

 private:
  int count_;
};

// The agent belongs to the scope; `spawn_agent` returns a reference, which can be copied and used
// on any thread.
task<> cast_and_call(weir::scope& s) {
  auto c = weir::spawn_agent<counter>(s, {.name = "counter"}, 5);
  c.cast(&counter::add, 3);                        // sent without waiting
  const int now = co_await c.call(&counter::get);  // sent, and waited for
  say("the count is " + std::to_string(now));      // messages are handled in order: 5 + 3
  co_await c.stop();                               // handles what is queued, then ends
}

// Both callers wait for the same agent. The second one's message waits in the mailbox.
task<> one_at_a_time(weir::scope& s) {
  auto c = weir::spawn_agent<counter>(s, {.name = "counter"});
  auto slow = s.spawn(c.call(&counter::add_slowly, 1));
  co_await weir::sleep(1ms);
  const int then = co_await c.call(&counter::get);
  say("get had to wait and sees " + std::to_string(then));
  co_await slow;
}

// A call whose caller has left is removed from the mailbox and not handled.
task<> patience(weir::scope& s) {
  auto c = weir::spawn_agent<counter>(s, {.name = "counter"});
  c.cast(&counter::add_slowly, 1);
  try {
    co_await weir::with_timeout(5ms, c.call(&counter::divide, 0));
  } catch (const weir::timeout_error&) {
    say("no answer within 5 ms");
  }
  const int then = co_await c.call(&counter::get);
  say("the count is " + std::to_string(then) + ", skipped: " + std::to_string(c.info().skipped));
}

// The error of a handler goes to the caller. The agent continues.
task<> errors(weir::scope& s) {
  auto c = weir::spawn_agent<counter>(s, {.name = "counter"}, 12);
  try {
    co_await c.call(&counter::divide, 0);
  } catch (const std::domain_error& e) {
    say(e.what());
  }
  const int third = co_await c.call(&counter::divide, 3);
  say("a third is " + std::to_string(third));
  co_await c.stop();
  // Every call has one answer, also when the agent has ended.
  try {
    co_await c.call(&counter::get);
  } catch (const weir::agent_error& e) {
    say(e.code() == weir::errc::agent_stopped ? "it has stopped" : e.what());
  }
}

void chapter(const char* title, task<> (*part)(weir::scope&)) {
  std::puts(title);
  weir::sim::run({}, [=] { return weir::with_scope(part); });
}

}  // namespace

int main() {
  chapter("cast and call", cast_and_call);
  chapter("one at a time", one_at_a_time);
  chapter("a call is not waited for", patience);
  chapter("errors", errors);
}
