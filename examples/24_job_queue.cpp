// SPDX-License-Identifier: MIT
// A job queue: any number of producers and workers on one loop. The queue is bounded, so producers
// that are faster than the workers have to wait; closing it ends the workers, after the last
// job.

#include <cstdio>
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

struct job {
  int number;
  weir::duration takes;
};

// A coroutine takes what it needs by value: the caller's temporaries are gone when it runs.
task<> work(std::string who, job todo) {
  co_await weir::sleep(todo.takes);
  say(who + " has done job " + std::to_string(todo.number));
}

// A worker takes a job when it has time for one; each job goes to one worker.
task<> worker(std::string who, weir::queue<job>& jobs) {
  for (;;) {
    auto next = co_await jobs.next();
    if (!next) break;  // closed, and nothing is left
    co_await work(who, *next);
  }
  say(who + " goes home");
}

// Two workers are busy and two jobs wait: the fifth push has to wait until there is room.
task<> back_pressure() {
  weir::queue<job> jobs(2, {.name = "jobs"});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(worker("ann", jobs));
    s.spawn(worker("ben", jobs));
    co_await weir::sleep(1ms);  // both are waiting now
    for (int number = 1; number <= 6; ++number) {
      co_await jobs.push({number, 10ms * number});
      say("accepted job " + std::to_string(number));
    }
    jobs.close();
  });
}

// `try_push` does not wait: it fails if there is no room, and the job still belongs to the caller.
task<> shed_load() {
  weir::queue<job> jobs(2, {.name = "jobs"});
  for (int number = 1; number <= 3; ++number) {
    const std::error_code refused = jobs.try_push({number, 10ms});
    say("job " + std::to_string(number) + ": " + (refused ? refused.message() : "accepted"));
  }
  co_await weir::yield();
}

// A worker that is cancelled while it waits for a job loses none.
task<> a_worker_leaves() {
  weir::queue<job> jobs(2, {.name = "jobs"});
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    auto ann = s.spawn(worker("ann", jobs));
    s.spawn(worker("ben", jobs));
    co_await weir::sleep(1ms);
    ann.cancel();
    co_await jobs.push({1, 10ms});
    co_await jobs.push({2, 10ms});
    jobs.close();
  });
}

// The same without explicit workers: the queue as a stream, three jobs at once.
task<> as_a_stream() {
  weir::queue<job> jobs(weir::unbounded, {.name = "jobs"});
  for (int number = 1; number <= 6; ++number) {
    co_await jobs.push({number, 10ms * (number % 3 + 1)});
  }
  jobs.close();
  auto one = [](job todo) { return work("somebody", todo); };
  co_await (jobs.stream() | weir::for_each(one, 3));
  say("all is done");
}

template <class F>
void chapter(const char* title, F part) {
  std::puts(title);
  weir::sim::run({}, part);
}

}  // namespace

int main() {
  chapter("two workers, room for two jobs", back_pressure);
  chapter("nobody waits", shed_load);
  chapter("a worker leaves", a_worker_leaves);
  chapter("as a stream", as_a_stream);
}
