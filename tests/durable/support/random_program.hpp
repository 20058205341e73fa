// SPDX-License-Identifier: MIT
// Random durable handlers, made from a seed only, and the world outside that watches their steps.
//
// What is watched: when the body of a step begins, everything that the run had seen when it called
// the step is durable (behaviours 2.2). So a result that was seen then is never replaced by another
// one, and its body never runs again, whatever crashes follow.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "durable/support/sources.hpp"
#include "support/disk_support.hpp"

namespace durable_test {

/// What the handlers do to the world, over all lives.
class outside {
 public:
  struct question {
    std::string id;
    weir::wall_time due;
    int value = 0;
  };

  using results = std::map<std::uint64_t, int>;  // steps and the tokens of their results

  /// The body of step `s` begins, which was called when the run had seen `before`; gives the token
  /// of its result.
  int begin(std::uint64_t s, const results& before) {
    for (const auto& [step, token] : before) {
      const auto [known, is_new] = durable_.emplace(step, token);
      if (!is_new && known->second != token) complain("another result of step", step);
    }
    if (durable_.contains(s)) complain("a second run of recorded step", s);
    ++bodies;
    if (on_body) on_body();
    return ++tokens_;
  }
  /// A run has got the result of step `s`.
  void see(std::uint64_t s, int token) {
    const auto known = durable_.find(s);
    if (known != durable_.end() && known->second != token) complain("a forgotten result of", s);
  }
  void ask(const question& q) {
    if (!questions.emplace(q.id, q).second) return;
    if (on_question) on_question(q);
  }
  /// The next life begins with nothing in memory.
  void next_life() {
    on_body = nullptr;
    on_question = nullptr;
  }

  int bodies = 0;
  std::map<std::string, question> questions;
  std::function<void()> on_body;
  std::function<void(const question&)> on_question;
  lines complaints;

 private:
  void complain(const char* what, std::uint64_t s) {
    complaints.push_back(what + std::string(" ") + std::to_string(s));
  }

  results durable_;  // certainly recorded
  int tokens_ = 0;
};

/// Whether the result depends on nothing but the seed: then no step takes time and nothing random
/// is asked for.
enum class flavour { repeatable, wild };

class random_program {
 public:
  random_program(outside& world, flavour kind) : world_(world), kind_(kind) {}

  task<int> node(std::uint64_t seed, int depth);
  /// A step in the ledger of the world; also what a called run does.
  task<int> one_step(std::uint64_t seed);
  /// Up to 100 ms, and never equal to another one.
  static weir::duration pause(std::uint64_t seed) {
    return weir::duration(1'000'000 + disk_support::generator(seed).below(100'000'000));
  }

 private:
  using draw = disk_support::generator;

  task<int> leaf(std::uint64_t seed, std::uint64_t choice);
  task<int> inner(std::uint64_t seed, int depth, std::uint64_t choice);
  task<int> inner_scope(std::uint64_t seed, int depth, std::uint64_t choice);
  task<int> slow_step(std::uint64_t seed);
  task<int> asked(std::uint64_t seed);
  task<int> promised_by_child(std::uint64_t seed);
  task<int> selected(std::uint64_t seed, int depth);
  task<int> cancelled_child(std::uint64_t seed, int depth);
  task<int> with_cleanup(std::uint64_t seed, int depth);

  static std::uint64_t part(std::uint64_t seed, std::uint64_t n) { return draw(seed + n).next(); }

  void see(std::uint64_t s, int token) {
    world_.see(s, token);
    seen_[s] = token;
  }

  outside& world_;
  flavour kind_;
  outside::results seen_;  // by this run, in this life
};

inline task<int> random_program::one_step(std::uint64_t seed) {
  const auto before = seen_;
  const int token = co_await weir::step("step", [&] { return world_.begin(seed, before); });
  see(seed, token);
  co_return static_cast<int>(seed % 97);
}

inline task<int> random_program::slow_step(std::uint64_t seed) {
  const auto before = seen_;
  auto body = [&]() -> task<int> {
    const int token = world_.begin(seed, before);
    co_await weir::sleep(pause(seed));
    co_return token;
  };
  const int token = co_await weir::step("slow", body);
  see(seed, token);
  co_return static_cast<int>(seed % 89);
}

inline task<int> random_program::asked(std::uint64_t seed) {
  auto answer = weir::awakeable<int>("question");
  const auto before = seen_;
  const int token = co_await weir::step("ask", [&] {
    const int t = world_.begin(seed, before);
    world_.ask({answer.id(), weir::wall_now() + pause(seed), static_cast<int>(seed % 83)});
    return t;
  });
  see(seed, token);
  co_return co_await answer.wait();
}

inline task<int> random_program::promised_by_child(std::uint64_t seed) {
  const std::string name = std::to_string(seed);
  auto resolves = resolve_after(pause(seed), name, static_cast<int>(seed % 71));
  auto [value, none] = co_await weir::all(promised(name), std::move(resolves));
  (void)none;
  co_return value;
}

inline task<int> random_program::leaf(std::uint64_t seed, std::uint64_t choice) {
  switch (choice % 8) {
    case 0:
    case 1:
      co_return co_await one_step(seed);
    case 6:
      co_return co_await weir::call<int>("child", seed);
    case 7:
      co_return co_await promised_by_child(seed);
    case 2:
      co_return co_await nap(pause(seed), static_cast<int>(seed % 79));
    case 3:
      co_return co_await asked(seed);
    case 4:
      co_await weir::sleep(pause(seed));
      throw weir::terminal_error("planned " + std::to_string(seed % 73));
    default:
      break;
  }
  if (kind_ == flavour::repeatable) co_return co_await one_step(seed);
  if (weir::random() % 2 == 0) co_return co_await slow_step(seed);
  co_return static_cast<int>(weir::uuid().size());
}

inline task<int> random_program::selected(std::uint64_t seed, int depth) {
  auto body = [&](weir::scope& s) -> task<int> {
    auto a = s.spawn(node(part(seed, 1), depth - 1));
    auto b = s.spawn(node(part(seed, 2), depth - 1));
    const auto first = co_await weir::select(a, b);
    const int after = co_await one_step(part(seed, 3));
    const auto [x, y] = co_await weir::all_settled(a, b);
    co_return static_cast<int>(first) + after + (x.is_value() ? x.value() : 1) +
        (y.is_value() ? y.value() : 2);
  };
  co_return co_await weir::with_scope({.failure = weir::failure::isolate}, body);
}

inline task<int> random_program::cancelled_child(std::uint64_t seed, int depth) {
  auto body = [&](weir::scope& s) -> task<int> {
    auto child = s.spawn(node(part(seed, 1), depth - 1));
    co_await weir::sleep(pause(seed));
    child.cancel();
    co_await s.idle();
    const auto* end = child.peek();
    co_return end->is_value() ? end->value() : end->is_cancelled() ? 5 : 6;
  };
  co_return co_await weir::with_scope({.failure = weir::failure::isolate}, body);
}

inline task<int> random_program::with_cleanup(std::uint64_t seed, int depth) {
  co_return co_await weir::with_scope([&](weir::scope& s) -> task<int> {
    s.defer([this, seed]() -> task<> { (void)co_await one_step(part(seed, 9)); });
    co_return co_await node(part(seed, 1), depth - 1);
  });
}

inline task<int> random_program::inner_scope(std::uint64_t seed, int depth, std::uint64_t choice) {
  switch (choice % 5) {
    case 0:
      co_return co_await selected(seed, depth);
    case 1:
      co_return co_await cancelled_child(seed, depth);
    case 2:
      co_return co_await with_cleanup(seed, depth);
    case 3: {
      const auto end = co_await weir::absorb(node(part(seed, 1), depth - 1));
      if (end.is_value()) co_return end.value();
      co_return co_await one_step(part(seed, 2));
    }
    default:
      break;
  }
  weir::oneshot<int> o;
  auto sends = [&]() -> task<int> {
    const auto end = co_await weir::settle(node(part(seed, 1), depth - 1));
    o.send(end.is_value() ? end.value() : 3);
    co_return 1;
  };
  auto receives = [&]() -> task<int> { co_return co_await o.receive(); };
  auto [a, b] = co_await weir::all(receives(), sends());
  co_return a + b;
}

inline task<int> random_program::inner(std::uint64_t seed, int depth, std::uint64_t choice) {
  auto a = node(part(seed, 1), depth - 1);
  auto b = node(part(seed, 2), depth - 1);
  switch (choice % 6) {
    case 0: {
      const int first = co_await std::move(a);
      co_return first * 3 + co_await std::move(b);
    }
    case 1: {
      auto [x, y] = co_await weir::all(std::move(a), std::move(b));
      co_return x * 2 + y;
    }
    case 2:
      co_return co_await weir::race(tasks(std::move(a), std::move(b)));
    case 3:
      co_return co_await weir::any(tasks(std::move(a), std::move(b)));
    case 4: {
      const auto end = co_await weir::settle(std::move(a));
      if (end.is_value()) co_return end.value();
      co_return co_await std::move(b);
    }
    default:
      break;
  }
  int late = 0;
  try {
    co_return co_await weir::with_timeout(pause(seed), std::move(a));
  } catch (const weir::timeout_error&) {
    late = 13;
  }
  co_return late + co_await std::move(b);
}

inline task<int> random_program::node(std::uint64_t seed, int depth) {
  const std::uint64_t choice = part(seed, 7);
  if (depth == 0) co_return co_await leaf(seed, choice);
  if (choice % 5 < 2) co_return co_await inner_scope(seed, depth, choice / 5);
  co_return co_await inner(seed, depth, choice / 5);
}

}  // namespace durable_test
