// SPDX-License-Identifier: MIT
//
// The floor of spawning and joining: a frame per child with its queue link inside, a FIFO and a
// counter, without a record, a name, a result, errors, cancellation or ownership.
#include <coroutine>
#include <exception>

#include "peers/floor/frames.hpp"
#include "support/measure.hpp"

namespace {

constexpr int rounds = 5;

struct bare_child {
  struct promise_type : bench::cached_frame {
    bare_child get_return_object() { return {this}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }

    promise_type* next = nullptr;
  };

  promise_type* frame;
};

class ready_queue {
 public:
  void push(bare_child child) {
    *tail_ = child.frame;
    tail_ = &child.frame->next;
  }

  void run() {
    while (bare_child::promise_type* const first = head_) {
      head_ = first->next;
      if (head_ == nullptr) tail_ = &head_;
      std::coroutine_handle<bare_child::promise_type>::from_promise(*first).resume();
    }
  }

 private:
  bare_child::promise_type* head_ = nullptr;
  bare_child::promise_type** tail_ = &head_;
};

[[gnu::noinline]] bare_child child(std::int64_t& finished) {
  ++finished;
  co_return;
}

bench::cost spawn_and_join(std::int64_t size) {
  ready_queue queue;
  std::int64_t finished = 0;
  const bench::stopwatch watch;
  for (std::int64_t i = 0; i < size; ++i) queue.push(child(finished));
  queue.run();
  const bench::cost cost = watch.per(size);
  if (finished != size) std::abort();
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t size = bench::size_argument(argc, argv);
  bench::report("spawn_cold", size, spawn_and_join(size));
  bench::costs each;
  for (int round = 0; round < rounds; ++round) each.add(spawn_and_join(size));
  each.report("spawn_join", size);
}
