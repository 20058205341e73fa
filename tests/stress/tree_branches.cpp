// SPDX-License-Identifier: MIT
// Each kind of operation in a tree.
#include <algorithm>
#include <condition_variable>
#include <stop_token>

#include "stress/tree_climber.hpp"

namespace fuzz {

task<number_t> climber::grow(const tree& t, surroundings e) {
  look_around(t, e);
  switch (t.what) {
    case branch::sleeps:
      return sleeps(t);
    case branch::yields:
      return yields(t);
    case branch::blocks:
      return blocks(t, e);
    case branch::answered_by_a_job:
      return answered_by_a_job(t);
    case branch::submits:
      return submits(t);
    case branch::on:
      return on(t, e);
    case branch::run:
      return run(t, e);
    case branch::timeout:
      return timeout(t, e);
    case branch::retry:
      return retry(t, e);
    case branch::settle:
      return settle(t, e);
    case branch::shield:
      return shield(t, e);
    case branch::local:
      return local(t, e);
    case branch::cancelled_child:
      return cancelled_child(t, e);
    case branch::token:
      return token(t, e);
    default:
      return grow_more(t, e);
  }
}
task<number_t> climber::grow_more(const tree& t, surroundings e) {
  switch (t.what) {
    case branch::deferred:
      return deferred(t, e);
    case branch::agent:
      return agent(t, e);
    case branch::all:
      return all(t, e);
    case branch::all_range:
      return all_range(t, e);
    case branch::parallel_map:
      return parallel_map(t, e);
    case branch::race:
      return race(t, e);
    case branch::any:
      return any(t, e);
    case branch::hedge:
      return hedge(t, e);
    case branch::scope:
      return scope(t, e);
    case branch::group:
      return group(t, e);
    case branch::map_async:
      return map_async(t, e);
    default:
      return at_once(t);
  }
}

number_t climber::fresh(const tree& t) { return t.id * number_t{1000} + note(t).starts; }
task<number_t> climber::at_once(const tree& t) {
  if (t.what == branch::fails) throw snapped(t.id);
  if (t.what == branch::flaky && note(t).starts % t.number != 0) throw snapped(t.id);
  co_return fresh(t);
}
task<number_t> climber::sleeps(const tree& t) {
  co_await weir::sleep(1us * t.micros);
  co_return fresh(t);
}
task<number_t> climber::yields(const tree& t) {
  for (int i = 0; i < t.number; ++i) co_await weir::yield();
  co_return fresh(t);
}
task<number_t> climber::blocks(const tree& t, surroundings e) {
  const number_t value = fresh(t);
  if (threads_ && e.known && e.deadline != weir::time_point::max() && t.number == 3) {
    auto until_stopped = [stop = weir::this_context().stop_token(), value] {
      std::mutex m;
      std::unique_lock lock(m);
      std::condition_variable_any().wait(lock, stop, [] { return false; });
      return value;
    };
    co_return co_await weir::blocking(std::move(until_stopped));
  }
  if (t.number == 2)
    co_return co_await weir::blocking(weir::may_abandon, [](number_t v) { return v; }, value);
  co_return co_await weir::blocking([value] { return value; });
}
task<number_t> climber::answered_by_a_job(const tree& t) {
  const number_t value = fresh(t);
  if (crashes()) co_return value;
  weir::pool& p = *pools_[t.place];
  co_return co_await weir::suspend<number_t>([&](weir::resumer<number_t> r) {
    if (p.try_submit([r, value, keep = token_]() mutable { r.complete(value); })) r.complete(value);
    return [] { return weir::cancel_result::done; };
  });
}
task<number_t> climber::submits(const tree& t) {
  weir::pool& p = *pools_[t.place];
  auto job = [this, keep = token_] { ++ran_; };
  if (t.number % 2 == 0) {
    co_await p.submit_for(1us * t.micros, std::move(job));
  } else {
    co_await p.submit(std::move(job));
  }
  ++accepted_;
  co_return fresh(t);
}

task<number_t> climber::on(const tree& t, surroundings e) {
  const number_t value = co_await weir::on(loops_[t.place], below(t, e));
  co_return expect(t.of.front(), value);
}
task<number_t> climber::run(const tree& t, surroundings e) {
  if (t.number == 1) {
    const number_t mine = fresh(t);
    const number_t got = co_await pools_[t.place]->run([mine] { return mine; });
    if (got != mine) blame(t, "a plain job has the value of another");
  }
  const number_t value = co_await pools_[t.place]->run(below(t, e));
  co_return expect(t.of.front(), value);
}
task<number_t> climber::timeout(const tree& t, surroundings e) {
  const weir::duration d = 1us * t.micros;
  const weir::time_point start = weir::now();
  e.deadline = std::min(e.deadline, start + d);
  number_t value = 0;
  std::exception_ptr error;
  try {
    if (t.number % 2 == 0) {
      value = co_await weir::with_timeout(d, below(t, e));
    } else {
      value = co_await weir::with_deadline(start + d, below(t, e));
    }
    expect(t.of.front(), value);
  } catch (...) {
    error = std::current_exception();
  }
  expect_prompt(t, start, d);
  if (error) std::rethrow_exception(error);
  co_return value;
}
task<number_t> climber::retry(const tree& t, surroundings e) {
  const auto op = weir::op(below(t, e)) | weir::retry({.attempts = t.number, .base = 1us});
  const number_t value = co_await op();
  co_return expect(t.of.front(), value);
}
task<number_t> climber::settle(const tree& t, surroundings e) {
  const auto end = co_await weir::settle(below(t, e));
  if (end.is_value()) co_return expect(t.of.front(), end.value());
  if (end.is_error()) judge(t.of.front(), end.error());
  if (end.is_cancelled() && !may_cancel(t)) blame(t, "is cancelled by nobody");
  co_return -t.id;
}
task<number_t> climber::shield(const tree& t, surroundings e) {
  if (t.number == 1) co_return co_await weir::shield(1us * t.micros, below(t, hidden(e)));
  co_return co_await weir::shield(below(t, hidden(e)));
}
task<number_t> climber::local(const tree& t, surroundings e) {
  e.label = t.id;
  const number_t value = co_await weir::with_local(label, t.id, below(t, e));
  co_return expect(t.of.front(), value);
}
task<number_t> climber::cancelled_child(const tree& t, surroundings e) {
  const weir::time_point start = weir::now();
  const auto body = [&](weir::scope& s) -> task<number_t> {
    auto one = s.spawn(below(t, e));
    co_await weir::sleep(1us * t.micros);
    one.cancel("changed my mind");
    const auto end = co_await weir::settle(one);
    expect_prompt(t, start, 1us * t.micros);
    if (end.is_error()) std::rethrow_exception(end.error());
    co_return end.is_value() ? expect(t.of.front(), end.value()) : -t.id;
  };
  co_return co_await weir::with_scope({.failure = weir::failure::isolate}, body);
}
task<number_t> climber::token(const tree& t, surroundings e) {
  weir::cancel_source source;
  const weir::time_point start = weir::now();
  const auto fire = [&]() -> task<> {
    co_await weir::sleep(1us * t.micros);
    source.cancel("by a token");
  };
  const auto body = [&](weir::scope& s) -> task<number_t> {
    if (t.place == 0 || crashes()) {
      s.spawn(fire);
    } else {
      s.spawn_on(loops_[0], fire);
    }
    const auto end = co_await weir::settle(weir::with_token(source.token(), below(t, e)));
    expect_prompt(t, start, 1us * t.micros);
    if (end.is_error()) std::rethrow_exception(end.error());
    co_return end.is_value() ? expect(t.of.front(), end.value()) : -t.id;
  };
  co_return co_await weir::with_scope(body);
}
task<number_t> climber::deferred(const tree& t, surroundings e) {
  const auto body = [&](weir::scope& s) -> task<number_t> {
    ++defers_;
    s.defer([&]() -> task<> {
      ++deferred_;
      co_await weir::sleep(1us * t.micros);
    });
    const number_t value = co_await eval(t.of.front(), e);
    co_return expect(t.of.front(), value);
  };
  co_return co_await weir::with_scope(body);
}
task<number_t> climber::agent(const tree& t, surroundings e) {
  const auto body = [&](weir::scope& s) -> task<number_t> {
    weir::agent_options options{.name = "evaluator"};
    if (t.number % 2 == 0 && !crashes()) options.on = loops_[t.place];
    auto ref = weir::spawn_agent<evaluator>(s, options, this);
    const number_t value = co_await ref.call(&evaluator::eval, &t.of.front(), hidden(e));
    co_return expect(t.of.front(), value);
  };
  co_return co_await weir::with_scope(body);
}

number_t climber::sum(const tree& t, const std::vector<number_t>& values) {
  number_t total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) total += expect(t.of[i], values[i]);
  return total;
}
task<number_t> climber::all(const tree& t, surroundings e) {
  if (t.of.size() == 1) {
    const auto [a] = co_await weir::all(child(t, 0, e));
    co_return expect(t.of[0], a);
  }
  if (t.of.size() == 2) {
    const auto [a, b] = co_await weir::all(child(t, 0, e), child(t, 1, e));
    co_return expect(t.of[0], a) + expect(t.of[1], b);
  }
  if (t.of.size() == 3) {
    const auto [a, b, c] = co_await weir::all(child(t, 0, e), eval(t.of[1], e), child(t, 2, e));
    co_return expect(t.of[0], a) + expect(t.of[1], b) + expect(t.of[2], c);
  }
  co_return co_await all_range(t, e);
}
task<number_t> climber::all_range(const tree& t, surroundings e) {
  const auto values = co_await weir::all(children(t, e));
  co_return sum(t, values);
}
task<number_t> climber::parallel_map(const tree& t, surroundings e) {
  std::vector<const tree*> items;
  for (const tree& one : t.of) items.push_back(&one);
  const auto fn = [this, e](const tree* one) { return eval(*one, e); };
  const auto values = co_await weir::parallel_map(items, fn, t.number);
  co_return sum(t, values);
}
task<number_t> climber::race(const tree& t, surroundings e) {
  number_t value = 0;
  if (t.of.size() == 2) {
    value = co_await weir::race(child(t, 0, e), eval(t.of[1], e));
  } else {
    value = co_await weir::race(children(t, e));
  }
  co_return expect_any(t, value);
}
task<number_t> climber::any(const tree& t, surroundings e) {
  number_t value = 0;
  if (t.of.size() == 2) {
    value = co_await weir::any(child(t, 0, e), eval(t.of[1], e));
  } else {
    value = co_await weir::any(children(t, e));
  }
  co_return expect_any(t, value);
}
task<number_t> climber::hedge(const tree& t, surroundings e) {
  note(t).taken = 0;
  const auto next = [this, &t, e] {
    return eval(t.of[static_cast<std::size_t>(note(t).taken++)], e);
  };
  const auto op = weir::op(next) | weir::hedge({.after = 1us * t.micros,
                                                .max = static_cast<std::int64_t>(t.of.size())});
  const number_t value = co_await op();
  co_return expect_any(t, value);
}
task<number_t> climber::scope(const tree& t, surroundings e) {
  const auto body = [&](weir::scope& s) -> task<number_t> {
    std::vector<weir::child<number_t>> all;
    for (std::size_t i = 0; i < t.of.size(); ++i) {
      const bool away = (t.id + static_cast<int>(i)) % 2 == 0;
      all.push_back(away ? s.spawn_on(loops_[t.place], child(t, i, e)) : s.spawn(child(t, i, e)));
    }
    number_t total = 0;
    for (std::size_t i = 0; i < t.of.size(); ++i) {
      const number_t value = co_await all[i];
      total += expect(t.of[i], value);
    }
    co_return total;
  };
  co_return co_await weir::with_scope(body);
}
task<number_t> climber::group(const tree& t, surroundings e) {
  std::vector<number_t> values(t.of.size());
  const auto body = [&](weir::group& g) -> task<> {
    for (std::size_t i = 0; i < t.of.size(); ++i)
      g.go([this, &t, &values, i, e]() -> task<> { values[i] = co_await eval(t.of[i], e); });
    co_await g.wait();
  };
  co_await weir::with_group(body);
  co_return sum(t, values);
}
task<number_t> climber::map_async(const tree& t, surroundings e) {
  std::vector<const tree*> items;
  for (const tree& one : t.of) items.push_back(&one);
  const auto fn = [this, e](const tree* one) { return eval(*one, hidden(e)); };
  // The scope joins what the stream has started, also if the sink is unwound.
  const auto body = [&](weir::scope&) -> task<std::vector<number_t>> {
    co_return co_await (weir::from(items) | weir::map_async(t.number, fn) | weir::to_vector());
  };
  const auto values = co_await weir::with_scope(body);
  co_return sum(t, values);
}

task<number_t> evaluator::eval(const tree* t, surroundings e) { return of_->eval(*t, e); }

}  // namespace fuzz
