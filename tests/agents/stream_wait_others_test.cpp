// SPDX-License-Identifier: MIT
// Waits for what others do (agents, other loops, threads, callbacks), inside every composite, in a
// generator.
#include "stream_wait_support.hpp"

using namespace weir_test;

namespace {

struct agent_call {
  static constexpr bool pausable = false;
  explicit agent_call(weir::scope& s) : ref(weir::spawn_agent<counter>(s, {}, 1)) {}
  auto op() { return ref.call(&counter::get_after, 8ms); }
  task<> release() { co_return; }
  agent_ref<counter> ref;
};
/// To a mailbox that is full.
struct agent_send {
  static constexpr bool pausable = false;  // on another loop it could not be taken back
  explicit agent_send(weir::scope& s)
      : ref(weir::spawn_agent<counter>(
            s, weir::agent_options{.capacity = 1, .overflow = weir::overflow::wait}, 1)) {
    (void)ref.cast(&counter::nap, 8ms);
  }
  auto op() {
    (void)ref.cast(&counter::inc, 1);
    return ref.send(&counter::inc, 1);
  }
  task<> release() { co_return; }
  agent_ref<counter> ref;
};
struct agent_join {
  static constexpr bool pausable = true;
  explicit agent_join(weir::scope& s) : ref(weir::spawn_agent<counter>(s, {}, 1)) {}
  auto op() { return ref.join(); }
  task<> release() {
    ref.stop();
    co_return;
  }
  agent_ref<counter> ref;
};
struct on_a_loop {
  static constexpr bool pausable = false;
  explicit on_a_loop(weir::scope& s) : there(s, {.name = "there"}) {}
  auto op() {
    return weir::on(weir::loop_ref(there), [] { return after(8ms, 1); });
  }
  task<> release() { co_return; }
  weir::loop_thread there;
};
struct in_a_pool {
  static constexpr bool pausable = false;
  explicit in_a_pool(weir::scope& s) : workers(s, {.workers = 1, .queue_size = 1}) {}
  auto op() {
    return workers.run([] { return after(8ms, 1); });
  }
  task<> release() { co_return; }
  weir::pool workers;
};
struct on_a_thread {
  static constexpr bool pausable = false;  // unless no thread has begun with it
  explicit on_a_thread(weir::scope&) {}
  auto op() {
    return weir::blocking([] { return 1; });
  }
  task<> release() { co_return; }
};
template <weir::cancel_result Answer, bool Pausable>
struct called_back {
  static constexpr bool pausable = Pausable;
  explicit called_back(weir::scope&) {}
  auto op() { return asked_it_says<int>(Answer, resumers); }
  task<> release() {
    for (auto& r : std::exchange(resumers, {})) r.complete(1);
    co_return;
  }
  held<int> resumers;
};

}  // namespace

TEST(stream_wait_others, calls_of_agents) { in_all_composites<agent_call>(); }
TEST(stream_wait_others, messages_to_agents) { in_all_composites<agent_send>(); }
TEST(stream_wait_others, the_end_of_an_agent) { in_all_composites<agent_join>(); }
TEST(stream_wait_others, other_loops) { in_all_composites<on_a_loop>(); }
TEST(stream_wait_others, pools) { in_all_composites<in_a_pool>(); }
TEST(stream_wait_others, blocking_calls) { in_all_composites<on_a_thread>(); }
TEST(stream_wait_others, callbacks) {
  in_all_composites<called_back<weir::cancel_result::done, false>>();
  in_all_composites<called_back<weir::cancel_result::no, false>>();
  in_all_composites<called_back<weir::cancel_result::later, false>>();
}
