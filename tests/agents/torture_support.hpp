// SPDX-License-Identifier: MIT
// The torture test of agents: what is known of each agent from outside, and the agent itself, which
// checks in every handler what must hold.
#pragma once

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace torture {

using namespace std::chrono_literals;
using weir::task;

inline constexpr int loop_count = 4;
inline constexpr int agents_per_tree = 250;
inline constexpr int agent_count = loop_count * agents_per_tree;
inline constexpr int clients_per_loop = 3;
inline constexpr int sender_count = 1 + loop_count * clients_per_loop;

/// splitmix64, so that a run does not depend on what else draws from the loop's random numbers.
class generator {
 public:
  explicit generator(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int below(int n) noexcept { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool percent(int p) noexcept { return below(100) < p; }

 private:
  std::uint64_t state_;
};

/// The error of a handler, with the number of the question that it belongs to.
struct refusal : std::runtime_error {
  explicit refusal(std::uint64_t of) : std::runtime_error("refused"), number(of) {}
  std::uint64_t number;
};

/// Who sent a message, and as the how-manieth one; sender 0 has no order.
struct stamp {
  int sender = 0;
  std::uint64_t number = 0;
};

/// One message of which its sender hears what became of it.
struct token {
  token(stamp by, std::uint64_t n) noexcept : from(by), number(n) {}
  const stamp from;
  const std::uint64_t number;
  std::atomic<int> runs{0};  // handlers that were given it
};
using token_ptr = std::shared_ptr<token>;

class world;
class member;

/// What is known of an agent from outside, through all its lives.
struct record {
  record(world& w, int n, std::string text) : of(w), id(n), name(std::move(text)) {}

  world& of;
  const int id;
  const std::string name;
  bool steady = false;  // only its own errors end its lives, and each is counted
  bool drops_oldest = false;
  bool is_bounded = false;
  bool crash_on_error = false;
  bool scoped = false;
  bool timed = false;
  bool unlimited = false;  // the time to finish a handler when it is stopped

  std::atomic<int> alive{0};    // objects
  std::atomic<int> helpers{0};  // children and defers of a life
  std::atomic<bool> busy{false};
  std::atomic<bool> fail_next{false};  // the next constructor throws
  std::atomic<long> constructed{0};
  std::atomic<long> destroyed{0};
  std::atomic<long> failed_starts{0};
  std::atomic<long> crashes{0};  // errors of handlers that end a life
  std::atomic<long> mail{0};     // casts and sends that have to be handled or dropped
  std::atomic<long> mail_handled{0};
  std::atomic<long> ticks_handled{0};
  std::atomic<long> calls_handled{0};
  std::atomic<long> calls_full{0};     // answered by mailbox_full
  std::atomic<long> calls_left{0};     // whose caller did not wait for the answer
  std::atomic<long> calls_unrun{0};    // of these, before they were handled
  std::atomic<long> calls_expired{0};  // of these, by a time limit
  std::atomic<int> endings{0};
  std::array<std::atomic<std::uint64_t>, sender_count> seen{};  // the last number of each sender
};

/// What happened in all, so that a run that exercises nothing is noticed.
struct tally {
  std::atomic<long> asked{0};
  std::atomic<long> concluded{0};
  std::atomic<long> values{0};
  std::atomic<long> errors{0};
  std::atomic<long> stopped{0};
  std::atomic<long> restarted{0};
  std::atomic<long> crashed{0};
  std::atomic<long> full{0};
  std::atomic<long> cycles{0};
  std::atomic<long> timeouts{0};
  std::atomic<long> cancelled{0};
  std::atomic<long> escalations{0};
  std::atomic<long> administered{0};
};

/// Everything that the loops share.
class world {
 public:
  world(std::uint64_t from, weir::duration length, weir::duration pause, bool one_thread)
      : seed(from), span(length), gap(pause), simulated(one_thread) {
    refs.resize(agent_count);
    for (int i = 0; i < agent_count; ++i) (void)add_record("agent " + std::to_string(i));
  }

  /// A record lives as long as the world, because messages to its agent may.
  record& add_record(std::string name) {
    const std::lock_guard lock(mutex_);
    return records_.emplace_back(*this, static_cast<int>(records_.size()), std::move(name));
  }
  record& at(int id) {
    const std::lock_guard lock(mutex_);
    return records_[static_cast<std::size_t>(id)];
  }
  std::deque<record>& records() noexcept { return records_; }

  void problem(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (problems_.size() < 20) problems_.push_back(text);
  }
  void require(bool holds, const record& r, const char* text) {
    if (!holds) problem("'" + r.name + "': " + text);
  }
  std::string problems() const {
    std::string all;
    for (const std::string& p : problems_) all += "\n  " + p;
    return all.empty() ? all : "seed " + std::to_string(seed) + ":" + all;
  }

  /// Calls that were left before they were handled: that must remain so.
  void keep_unhandled(token_ptr t) {
    const std::lock_guard lock(mutex_);
    if (unhandled_.size() < 100'000) unhandled_.push_back(std::move(t));
  }
  const std::vector<token_ptr>& unhandled() const noexcept { return unhandled_; }

  const std::uint64_t seed;
  const weir::duration span;  // how long clients are active
  const weir::duration gap;   // between two operations of a client, at most
  const bool simulated;
  std::array<weir::loop_ref, loop_count> loops;
  std::vector<std::optional<weir::agent_ref<member>>> refs;  // by id
  std::array<std::atomic<int>, 8> arrived{};                 // at each meeting point
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> numbers{0};
  tally seen;

 private:
  std::mutex mutex_;
  std::deque<record> records_;
  std::vector<std::string> problems_;
  std::vector<token_ptr> unhandled_;
};

/// Counts something while it exists.
class counted {
 public:
  explicit counted(std::atomic<int>& in) noexcept : in_(&in) { ++*in_; }
  counted(counted&& other) noexcept : in_(std::exchange(other.in_, nullptr)) {}
  counted& operator=(counted&&) = delete;
  ~counted() {
    if (in_ != nullptr) --*in_;
  }

 private:
  std::atomic<int>* in_;
};

/// One handler of an agent that runs: there must not be another one.
class turn {
 public:
  explicit turn(record& r) : of_(&r) {
    r.of.require(!r.busy.exchange(true), r, "two handlers at once");
    r.of.require(r.alive == 1, r, "a handler runs without its object");
  }
  turn(turn&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  turn& operator=(turn&&) = delete;
  ~turn() {
    if (of_ != nullptr) of_->busy = false;
  }

 private:
  record* of_;
};

/// Asks for the scope of the life.
struct with_area {};

/// The agent.
class member {
 public:
  explicit member(record* r) : of_(*r) { begin(); }
  member(weir::scope& s, record* r, with_area) : of_(*r), area_(&s) {
    begin();
    s.defer([&of = of_]() -> task<> {
      const counted here(of.helpers);
      co_await weir::sleep(1ms);
    });
  }
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member() {
    world& w = of_.of;
    w.require(of_.helpers == 0, of_, "destroyed before its scope has ended");
    w.require(!of_.busy, of_, "destroyed during a handler");
    ++of_.destroyed;
    --of_.alive;
  }

  // ---- Casts.

  void touch(stamp from) { const turn now = handle(from); }
  task<> work(stamp from, int ms) { return pass(handle(from), ms); }
  /// Cannot be cut off at the limit of its supervisor.
  task<> insist(stamp from, int ms) { return pass_shielded(handle(from), ms); }
  void fail(stamp from) {
    const turn now = handle(from);
    ++of_.crashes;
    throw refusal(0);
  }
  task<> fail_later(stamp from, int ms) { return pass_and_fail(handle(from), ms); }
  void arm(stamp from, int ms) {
    const turn now = handle(from);
    if (!of_.timed) return;
    const auto self = weir::self<member>();
    (void)self.cast_after(ms * 1ms, &member::tick);
    every_.cancel();
    every_ = self.cast_every((ms + 1) * 10ms, &member::tick);
  }
  void tick() {
    const turn now(of_);
    ++of_.ticks_handled;
    if (of_.of.over) every_.cancel();
  }
  /// Leaves work to a child of its life; one that fails ends the life.
  void delegate(stamp from, int ms, bool fails) {
    const turn now = handle(from);
    if (area_ == nullptr) return;
    (void)area_->spawn(help(of_, ms, fails && !of_.steady));
  }
  task<> retire(stamp from) { return stop_myself(handle(from)); }

  // ---- Sends.

  void take(token_ptr t) {
    const turn now = handle(t->from);
    ++t->runs;
  }

  // ---- Calls.

  long answer(token_ptr t) {
    const turn now = handle_call(*t);
    return answer_of(*t);
  }
  task<long> answer_later(token_ptr t, int ms) {
    turn now = handle_call(*t);
    return pass_and_answer(std::move(now), std::move(t), ms);
  }
  long refuse(token_ptr t) {
    const turn now = handle_call(*t);
    if (of_.crash_on_error) ++of_.crashes;
    throw refusal(t->number);
  }
  /// Asks the agents after it, so that there cannot be a cycle.
  task<long> relay(token_ptr t, int depth);
  /// Asks a neighbour, which asks this one.
  task<long> there_and_back(token_ptr t, bool through_child);
  task<long> back(token_ptr t, int origin);

  static long answer_of(const token& t) noexcept { return static_cast<long>(t.number % 1000) + 7; }

 private:
  void begin() {
    if (of_.fail_next.exchange(false)) {
      ++of_.failed_starts;
      throw refusal(0);
    }
    of_.of.require(of_.alive++ == 0, of_, "two lives at once");
    of_.of.require(of_.helpers == 0, of_, "a life begins before the last one has cleaned up");
    ++of_.constructed;
  }
  void check_order(const stamp& from) {
    if (from.sender == 0) return;
    const auto before = of_.seen[static_cast<std::size_t>(from.sender)].exchange(from.number);
    of_.of.require(before < from.number, of_, "a message overtook an earlier one of its sender");
  }
  turn handle(const stamp& from) {
    ++of_.mail_handled;
    check_order(from);
    return turn(of_);
  }
  turn handle_call(token& t) {
    ++of_.calls_handled;
    of_.of.require(t.runs++ == 0, of_, "a call was handled twice");
    check_order(t.from);
    return turn(of_);
  }

  static task<> pass(turn, int ms) { co_await weir::sleep(ms * 1ms); }
  static task<> pass_shielded(turn, int ms) { co_await weir::shield(weir::sleep(ms * 1ms)); }
  task<> pass_and_fail(turn, int ms) {
    co_await weir::sleep(ms * 1ms);
    ++of_.crashes;
    throw refusal(0);
  }
  static task<long> pass_and_answer(turn, token_ptr t, int ms) {
    co_await weir::sleep(ms * 1ms);
    co_return answer_of(*t);
  }
  static task<> help(record& of, int ms, bool fails) {
    const counted here(of.helpers);
    co_await weir::sleep(ms * 1ms);
    if (fails) throw refusal(0);
  }
  /// Waiting for the own end would never end, and so is refused.
  task<> stop_myself(turn) {
    auto end = weir::self<member>().stop();
    bool refused = false;
    try {
      co_await end;
    } catch (const weir::agent_error& e) {
      refused = e.code() == weir::errc::call_cycle;
    }
    of_.of.require(refused, of_, "an agent waited for its own end");
  }
  task<long> ask_further(turn, token_ptr t, int depth);
  task<long> ask_neighbour(turn, token_ptr t, bool through_child);
  task<long> ask_back(turn, token_ptr t, int origin);

  record& of_;
  weir::scope* area_ = nullptr;
  weir::timer_handle every_;
};

// ------------------------------------------------------------------ questions

enum class question { answer, later, refuse, relay, there_and_back, back };

struct query {
  question what = question::answer;
  int number = 0;  // milliseconds, depth or id, as the handler wants it
};

inline auto make_call(const weir::agent_ref<member>& to, const token_ptr& t, query q) {
  switch (q.what) {
    case question::later:
      return to.call(&member::answer_later, t, q.number);
    case question::refuse:
      return to.call(&member::refuse, t);
    case question::relay:
      return to.call(&member::relay, t, q.number);
    case question::there_and_back:
      return to.call(&member::there_and_back, t, q.number % 2 == 1);
    case question::back:
      return to.call(&member::back, t, q.number);
    default:
      return to.call(&member::answer, t);
  }
}

/// One call from the side of the caller: ends with exactly one conclusion.
class inquiry {
 public:
  inquiry(record& r, stamp from) : to(r), asked(std::make_shared<token>(from, ++r.of.numbers)) {
    ++r.of.seen.asked;
  }
  inquiry(const inquiry&) = delete;
  inquiry& operator=(const inquiry&) = delete;
  ~inquiry() {
    if (!concluded_) left(false);
  }

  void value(long v) {
    to.of.require(v == member::answer_of(*asked), to, "the answer of another call");
    to.of.require(asked->runs == 1, to, "an answer without a handler");
    conclude(to.of.seen.values);
  }
  void failed(const std::exception_ptr& error);

  record& to;
  const token_ptr asked;

 private:
  void conclude(std::atomic<long>& as) {
    to.of.require(!std::exchange(concluded_, true), to, "a second answer");
    ++to.of.seen.concluded;
    ++as;
  }
  /// The caller did not wait for the answer.
  void left(bool expired) {
    ++to.calls_left;
    if (asked->runs == 0) {
      ++to.calls_unrun;
      if (expired) ++to.calls_expired;
      // On other threads, a handler may be about to begin.
      if (to.of.simulated) to.of.keep_unhandled(asked);
    }
    conclude(expired ? to.of.seen.timeouts : to.of.seen.cancelled);
  }
  void failed_by(const weir::agent_error& e);
  bool concluded_ = false;
};

inline void inquiry::failed_by(const weir::agent_error& e) {
  tally& seen = to.of.seen;
  if (e.code() == weir::errc::agent_stopped) return conclude(seen.stopped);
  if (e.code() == weir::errc::agent_restarted) return conclude(seen.restarted);
  if (e.code() == weir::errc::agent_crashed) return conclude(seen.crashed);
  if (e.code() == weir::errc::mailbox_full) {
    to.of.require(asked->runs == 0, to, "handled, but answered with mailbox_full");
    ++to.calls_full;
    return conclude(seen.full);
  }
  if (e.code() == weir::errc::call_cycle) {
    to.of.require(asked->runs == 0, to, "handled, but answered with call_cycle");
    to.of.require(!e.chain().empty(), to, "a cycle without a chain");
    return conclude(seen.cycles);
  }
  to.of.problem("'" + to.name + "': unexpected answer: " + e.what());
  conclude(seen.errors);
}

inline void inquiry::failed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const refusal& e) {
    to.of.require(e.number == asked->number, to, "the error of another call");
    to.of.require(asked->runs == 1, to, "an error without a handler");
    conclude(to.of.seen.errors);
  } catch (const weir::agent_error& e) {
    failed_by(e);
  } catch (const weir::timeout_error&) {
    left(true);
  } catch (const std::exception& e) {
    to.of.problem("'" + to.name + "': unexpected error: " + e.what());
    conclude(to.of.seen.errors);
  }
}

/// Asks an agent and checks the answer; a limit of 0 is none.
inline task<> ask(world& w, int id, stamp from, query q, weir::duration limit = {}) {
  inquiry one(w.at(id), from);
  try {
    const weir::agent_ref<member>& to = *w.refs[static_cast<std::size_t>(id)];
    if (limit > weir::duration::zero()) {
      one.value(co_await weir::with_timeout(limit, make_call(to, one.asked, q)));
    } else {
      one.value(co_await make_call(to, one.asked, q));
    }
  } catch (...) {
    one.failed(std::current_exception());
  }
}

inline task<long> member::relay(token_ptr t, int depth) {
  turn now = handle_call(*t);
  return ask_further(std::move(now), std::move(t), depth);
}

// A sibling may have been stopped already, and begin its next life only when this one has ended:
// whoever has no limit for that must not wait for ever.
inline task<long> member::ask_further(turn, token_ptr t, int depth) {
  const int next = of_.id + 1 + static_cast<int>(t->number % 5);
  const weir::duration limit = of_.unlimited ? 40ms : 0ms;
  if (depth > 0 && next < agent_count)
    co_await ask(of_.of, next, {}, {question::relay, depth - 1}, limit);
  co_return answer_of(*t);
}

inline task<long> member::there_and_back(token_ptr t, bool through_child) {
  turn now = handle_call(*t);
  return ask_neighbour(std::move(now), std::move(t), through_child);
}

// Neighbours may ask each other at the same time without being one chain: hence the limit.
inline task<long> member::ask_neighbour(turn, token_ptr t, bool through_child) {
  const int next = of_.id ^ 1;
  const query q{question::back, of_.id};
  if (!through_child) {
    co_await ask(of_.of, next, {}, q, 40ms);
  } else {
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      (void)s.spawn(ask(of_.of, next, {}, q, 40ms));
      co_return;
    });
  }
  co_return answer_of(*t);
}

inline task<long> member::back(token_ptr t, int origin) {
  turn now = handle_call(*t);
  return ask_back(std::move(now), std::move(t), origin);
}

// Mostly without a limit: if the cycle is not found, this never ends.
inline task<long> member::ask_back(turn, token_ptr t, int origin) {
  co_await ask(of_.of, origin, {}, {}, of_.unlimited ? 40ms : 0ms);
  co_return answer_of(*t);
}

}  // namespace torture
