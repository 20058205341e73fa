// SPDX-License-Identifier: MIT
// A chat room that survives its own crash. The room and its members are agents, a task forwards
// messages from outside to the room, and a supervisor restarts them: the list of members is known
// to the room alone, so when it crashes all children are restarted (one_for_all) and the members
// enter the new room.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

struct message {
  std::string from;
  std::string text;
};

class room;

class member {
 public:
  member(std::string name, weir::agent_ref<room> where);
  ~member() { std::printf("  %s is gone\n", name_.c_str()); }
  void hear(const message& said) {
    if (said.from == name_) return;
    std::printf("    %s reads %s: \"%s\"\n", name_.c_str(), said.from.c_str(), said.text.c_str());
  }

 private:
  std::string name_;
};

class room {
 public:
  room() { std::puts("  the room is open"); }
  ~room() { std::puts("  the room is gone"); }
  void enter(weir::agent_ref<member> who) { members_.push_back(std::move(who)); }
  // Fan-out: a cast for each. Casts do not wait, so a slow member does not slow down the others.
  void tell(const message& said) {
    // This is not caught: it crashes the room, and the supervisor is notified.
    if (said.text.empty()) throw std::invalid_argument("a message without text");
    for (auto& one : members_) one.cast(&member::hear, said);
  }
  std::size_t people() const { return members_.size(); }

 private:
  std::vector<weir::agent_ref<member>> members_;
};

// An agent enters the room in its constructor, so it does so again in each of its lives.
member::member(std::string name, weir::agent_ref<room> where) : name_(std::move(name)) {
  std::printf("  %s enters\n", name_.c_str());
  where.cast(&room::enter, weir::self<member>());
}

task<> evening() {
  weir::queue<message> wire(16, {.name = "wire"});
  weir::supervisor sup({.name = "chat",
                        .strategy = weir::strategy::one_for_all,
                        .auto_shutdown = weir::auto_shutdown::any_significant});
  // They are started in this order and stopped in reverse. A reference is valid at once, and stays
  // valid when its agent is restarted.
  auto lobby = sup.add<room>({.name = "room"});
  for (const char* name : {"ann", "ben", "cleo"}) {
    sup.add<member>({.name = name}, std::string(name), lobby);
  }
  // The task ends when the wire is closed, and then the supervisor ends.
  auto pump = [&]() -> task<> {
    auto tell = [&](message said) { lobby.cast(&room::tell, std::move(said)); };
    co_await (wire.stream() | weir::for_each(tell));
  };
  sup.add_task({.name = "pump", .restart = weir::restart::transient, .significant = true}, pump);

  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run());
    const std::vector<message> said = {
        {"ann", "hello"}, {"ben", "hello ann"}, {"cleo", ""}, {"ann", "what was that?"}};
    for (const message& one : said) {
      co_await weir::sleep(10ms);
      std::printf("%s: \"%s\"\n", one.from.c_str(), one.text.c_str());
      co_await wire.push(one);
    }
    co_await weir::sleep(10ms);
    const std::size_t people = co_await lobby.call(&room::people);
    std::printf("(%zu in the room, restarts of it: %d)\n", people,
                static_cast<int>(lobby.info().restarts));
    wire.close();
  });
  std::puts("good night");
}

}  // namespace

int main() { weir::sim::run({}, evening); }
