// SPDX-License-Identifier: MIT
// What generators of random pipelines await.
#include <memory>

#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

/// with_timeout(short) of next(): after so many trials the patience is enough for anything.
constexpr int trials_max = 16;

task<> nap(int n) { co_await weir::sleep(ms(n)); }
task<int> answer(int n) {
  co_await weir::sleep(ms(n));
  co_return n;
}

task<> push_later(weir::queue<item>& q, int n) {
  co_await weir::sleep(ms(n));
  try {
    co_await q.push(item(n));
  } catch (const std::exception&) {
    // The item is hostile.
  }
  q.close();
}
task<> set_later(weir::event& e, int n) {
  co_await weir::sleep(ms(n));
  e.set();
}

/// A queue into which one item is pushed after some time, and which then is closed.
weir::queue<item>& queue_with_one(world& w, int n) {
  weir::queue<item>& q = w.queues.emplace_back(n % 3);
  w.beside(push_later(q, n));
  return q;
}

void require(world& w, bool holds, const char* what) {
  if (!holds && !w.stopped() && !w.counted_items.disturbed()) w.problem(what);
}

task<> on_waits(world& w, step s) {
  switch (s.what) {
    case awaits::yield:
      co_await weir::yield();
      break;
    case awaits::sleep:
      co_await weir::sleep(ms(s.ms));
      break;
    case awaits::queue_next: {
      auto v = co_await queue_with_one(w, s.ms).next();
      require(w, v && v->value() == s.ms, "an item of a queue was lost");
      break;
    }
    case awaits::event_wait: {
      weir::event& e = w.events.emplace_back();
      w.beside(set_later(e, s.ms));
      co_await e.wait();
      break;
    }
    case awaits::mutex_lock: {
      weir::mutex& m = w.mutexes.empty() ? w.mutexes.emplace_back() : w.mutexes.front();
      auto held = co_await m.lock();
      co_await weir::sleep(ms(s.ms));
      break;
    }
    case awaits::permit: {
      weir::counting_governor& g = w.counting.emplace_back(1);
      auto held = co_await g.acquire();
      co_await weir::sleep(ms(s.ms));
      break;
    }
    case awaits::a_future: {
      auto done = w.home->spawn(nap(s.ms));
      co_await done;
      break;
    }
    default:
      break;
  }
}

task<> until_in_time(weir::stream<item>& from, world& w) {
  weir::duration patience = ms(1);
  for (int i = 0; i < trials_max; ++i, patience *= 2) {
    try {
      auto v = co_await weir::with_timeout(patience, from.next());
      require(w, v.has_value(), "an inner stream ended too early");
      co_return;
    } catch (const weir::timeout_error&) {
    }
  }
  w.problem("an inner stream gave nothing");
}

task<> on_composites(world& w, step s) {
  switch (s.what) {
    case awaits::race_of_sleeps:
      co_await weir::race(weir::sleep(ms(s.ms)), weir::sleep(ms(9 - s.ms)));
      break;
    case awaits::any_of_sleeps:
      co_await weir::any(weir::sleep(ms(s.ms)), weir::sleep(ms(9 - s.ms)));
      break;
    case awaits::race_queue_sleep: {
      weir::queue<item>& q = queue_with_one(w, s.ms);
      auto first = co_await weir::race(q.next(), weir::sleep(ms(4)));
      if (first.index() == 0) break;
      auto v = co_await q.next();
      require(w, v.has_value(), "the loser of a race took an item along");
      break;
    }
    case awaits::timeout_sleep:
      co_await weir::with_timeout(1h, weir::sleep(ms(s.ms)));
      break;
    case awaits::timeout_too_short:
      try {
        co_await weir::with_timeout(ms(1), weir::sleep(ms(s.ms)));
      } catch (const weir::timeout_error&) {
      }
      break;
    case awaits::timeout_queue: {
      weir::queue<item>& q = queue_with_one(w, s.ms);
      auto v = co_await weir::with_timeout(1h, q.next());
      require(w, v.has_value(), "an item of a queue was lost");
      break;
    }
    case awaits::inner_stream: {
      auto inner = ticking(w, 1, 2, s.ms);
      auto v = co_await inner.next();
      require(w, v.has_value(), "an inner stream ended too early");
      break;
    }
    default: {
      auto inner = ticking(w, 1, 2, s.ms);
      co_await until_in_time(inner, w);
      break;
    }
  }
}

task<> on_calls(world& w, step s) {
  weir::agent_ref<helper>& agent = *w.agent;
  int answer = s.ms;
  switch (s.what) {
    case awaits::agent_call:
      answer = co_await agent.call(&helper::slow, s.ms, s.ms);
      break;
    case awaits::agent_send:
      co_await agent.send(&helper::note, s.ms);
      break;
    case awaits::timeout_call:
      answer = co_await weir::with_timeout(1h, agent.call(&helper::slow, s.ms, s.ms));
      break;
    case awaits::timeout_call_short:
      try {
        answer = co_await weir::with_timeout(ms(2), agent.call(&helper::slow, s.ms, s.ms));
      } catch (const weir::timeout_error&) {
      }
      break;
    case awaits::race_call_sleep: {
      auto first = co_await weir::race(agent.call(&helper::slow, s.ms, s.ms), weir::sleep(ms(4)));
      if (first.index() == 0) answer = std::get<0>(first);
      break;
    }
    case awaits::any_call_sleep: {
      auto first = co_await weir::any(agent.call(&helper::slow, s.ms, s.ms), weir::sleep(ms(4)));
      if (first.index() == 0) answer = std::get<0>(first);
      break;
    }
    default: {
      auto both = co_await weir::all(agent.call(&helper::slow, s.ms, s.ms),
                                     agent.call(&helper::echo, s.ms));
      answer = std::get<1>(both);
      break;
    }
  }
  require(w, answer == s.ms, "the answer of an agent is wrong");
}

/// Somebody completes it, also if it was withdrawn and started again.
task<> on_suspension(world& w, int n) {
  struct shared_state {
    std::optional<weir::resumer<int>> open;
    bool done = false;
  };
  struct mark {
    shared_state& of;
    ~mark() { of.done = true; }
  };
  auto state = std::make_shared<shared_state>();
  const mark at_end{*state};
  auto complete = [](std::shared_ptr<shared_state> of, int ms_each) -> task<> {
    while (!of->done) {
      co_await weir::sleep(ms(ms_each + 1));
      if (of->open) std::exchange(of->open, std::nullopt)->complete(ms_each);
    }
  };
  w.beside(complete(state, n));
  auto start = [&](weir::resumer<int> r) {
    state->open.emplace(std::move(r));
    return [state] {
      state->open.reset();
      return weir::cancel_result::done;
    };
  };
  const int v = co_await weir::suspend<int>(start);
  require(w, v == n, "a suspension gave a wrong value");
}

task<> on_tasks(world& w, step s) {
  switch (s.what) {
    case awaits::timeout_task:
      co_await weir::with_timeout(1h, nap(s.ms));
      break;
    case awaits::race_tasks:
      co_await weir::race(nap(s.ms), nap(9 - s.ms));
      break;
    case awaits::all_sleeps:
      co_await weir::all(weir::sleep(ms(s.ms)), weir::sleep(ms(9 - s.ms)));
      break;
    case awaits::settled_task: {
      auto how = co_await weir::settle(answer(s.ms));
      require(w, how.is_value(), "a settled task did not end well");
      break;
    }
    case awaits::scope_with_child: {
      auto body = [&](weir::scope& inner) -> task<int> {
        auto a = inner.spawn(answer(s.ms));
        const int v = co_await a;
        co_return v;
      };
      const int v = co_await weir::with_scope(body);
      require(w, v == s.ms, "a child gave a wrong value");
      break;
    }
    case awaits::shielded:
      co_await weir::shield(weir::sleep(ms(s.ms)));
      break;
    case awaits::on_other_loop: {
      const int v = co_await weir::on(*w.other, answer(s.ms));
      require(w, v == s.ms, "another loop gave a wrong value");
      break;
    }
    case awaits::blocking: {
      auto work = [&] { return s.ms; };
      const int v = co_await weir::blocking(work);
      require(w, v == s.ms, "blocking gave a wrong value");
      break;
    }
    default:
      co_await on_suspension(w, s.ms);
      break;
  }
}

}  // namespace

task<> perform(world& w, step s) {
  if (s.what <= awaits::a_future) return on_waits(w, s);
  if (s.what <= awaits::last_withdrawable) return on_composites(w, s);
  if (s.what <= awaits::any_call_sleep || s.what == awaits::all_calls) return on_calls(w, s);
  return on_tasks(w, s);
}

weir::stream<item> ticking(world& w, int first, int count, int ms_each) {
  visit here(w.generators);
  auto good = weir::scope_success([&] { ++w.generators.succeeded; });
  auto bad = weir::scope_failure([&] { ++w.generators.failed; });
  for (int i = 0; i < count; ++i) {
    co_await weir::sleep(ms(ms_each));
    co_yield item(first + i);
  }
  here.complete();
}

}  // namespace fuzz
