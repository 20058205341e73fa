// SPDX-License-Identifier: MIT
// Independent workers: one_for_one. When one crashes it alone is restarted, and the others are not
// affected. If crashes are too frequent, the supervisor gives up, and its error says
// why.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/sim.hpp>
#include <weir/weir.hpp>
using namespace std::chrono_literals;
using weir::task;

namespace {

void say(const std::string& what) {
  std::printf("  %3d ms: %s\n", static_cast<int>(weir::now().time_since_epoch() / 1ms),
              what.c_str());
}

class worker {
 public:
  explicit worker(int number) : who_("worker " + std::to_string(number)) { say(who_ + " starts"); }
  task<> resize(int picture) {
    co_await weir::sleep(10ms);
    if (picture == 5) {
      say(who_ + " crashes");
      throw std::runtime_error("picture 5 is broken");
    }
    ++done_;
    say(who_ + ": picture " + std::to_string(picture) + ", done by now: " + std::to_string(done_));
  }

 private:
  std::string who_;
  int done_ = 0;  // of this life
};

/// Gives the jobs to the workers in turn.
class dispatcher {
 public:
  // `keep`: messages that a worker has not begun are handled by its next life. The message that
  // crashed it is not kept.
  dispatcher(weir::supervisor& sup, int workers) {
    for (int i = 1; i <= workers; ++i) {
      const std::string name = "worker " + std::to_string(i);
      workers_.push_back(sup.add<worker>({.name = name, .on_restart = weir::mailbox::keep}, i));
    }
  }
  void submit(int picture) {
    workers_[next_].cast(&worker::resize, picture);
    next_ = (next_ + 1) % workers_.size();
  }

 private:
  std::vector<weir::agent_ref<worker>> workers_;
  std::size_t next_ = 0;
};

task<> one_crash() {
  weir::supervisor sup({.name = "workers", .strategy = weir::strategy::one_for_one});
  dispatcher pictures(sup, 3);
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(sup.run());
    for (int picture = 1; picture <= 9; ++picture) pictures.submit(picture);
    co_await weir::sleep(1s);
    for (const auto& child : sup.which_children())
      say(std::string(child.name) + ", restarts: " + std::to_string(child.restarts));
    co_await sup.stop();
  });
}

task<> too_many() {
  weir::supervisor sup({.name = "workers", .max_restarts = 2, .within = 1s});
  dispatcher pictures(sup, 1);
  for (int i = 0; i < 5; ++i) pictures.submit(5);
  try {
    co_await sup.run();
  } catch (const weir::restart_limit_error& e) {
    say("given up after " + std::to_string(e.errors().size()) + " crashes");
  }
}

}  // namespace

int main() {
  std::puts("one crash");
  weir::sim::run({}, one_crash);
  std::puts("too many");
  weir::sim::run({}, too_many);
}
