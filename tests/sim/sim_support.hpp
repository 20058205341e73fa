// SPDX-License-Identifier: MIT
// What the tests of the simulation share: programs with a known weakness, and small questions about
// reports.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>

#include "support/test_support.hpp"

namespace weir_test {

using namespace test_support;
using weir::task;
namespace sim = weir::sim;

/// Reads, gives up the turn, writes back: whoever writes in between is overwritten.
inline task<> deposit(int& account, int delay) {
  for (int i = 0; i < delay; ++i) co_await weir::yield();
  int seen = account;
  co_await weir::yield();
  account = seen + 1;
}

/// Two deposits, the second `delay` turns late. An update is lost if the second one reads before
/// the first one writes: in the order of production the balance is 2 for any delay above 0, and
/// with a delay of 1 one preemption is enough for the loss.
inline task<int> balance(int delay) {
  int account = 0;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    s.spawn(deposit(account, 0), {.name = "early"});
    s.spawn(deposit(account, delay), {.name = "late"});
    co_await s.join();
  });
  co_return account;
}

/// Fails with "boom 1" if an update is lost.
inline task<> transfer(int delay) {
  int left = co_await balance(delay);
  if (left != 2) throw boom(left);
}

/// Fails with "boom <times>" if an update is lost in each of so many transfers, one after the
/// other: that needs as many preemptions.
inline task<> transfers(int times) {
  int lost = 0;
  for (int i = 0; i < times; ++i) lost += co_await balance(1) == 1 ? 1 : 0;
  if (lost == times) throw boom(lost);
}

inline task<> talker(std::string& log, char name, int lines) {
  for (int i = 0; i < lines; ++i) {
    log += name;
    co_await weir::yield();
  }
}

/// The order in which several fibers get their turns.
inline task<std::string> conversation(int speakers, int lines) {
  std::string log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < speakers; ++i) s.spawn(talker(log, static_cast<char>('a' + i), lines));
    co_await s.join();
  });
  co_return log;
}

inline task<> sleeper(std::string& log, char name, weir::duration d) {
  co_await weir::sleep(d);
  log += name;
}

/// The order in which sleepers wake, each `apart` after the one before.
inline task<std::string> wake_order(int sleepers, weir::duration apart = 0ns) {
  std::string log;
  co_await weir::with_scope([&](weir::scope& s) -> task<> {
    for (int i = 0; i < sleepers; ++i)
      s.spawn(sleeper(log, static_cast<char>('a' + i), 10ms + i * apart));
    co_await s.join();
  });
  co_return log;
}

/// The first random number of the run of this seed; different for each seed.
inline std::uint64_t number_of(std::uint64_t seed) {
  return sim::run({.seed = seed, .strategy = sim::random},
                  []() -> task<std::uint64_t> { co_return weir::random(); });
}

template <class Printable>
std::string printed(const Printable& what) {
  std::ostringstream out;
  out << what;
  return out.str();
}

/// The part of `text` from the first `word` on, or nothing.
inline std::string from(const std::string& text, const std::string& word) {
  auto at = text.find(word);
  return at == std::string::npos ? std::string() : text.substr(at);
}

/// An environment variable for as long as this lives.
class environment_variable {
 public:
  environment_variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value, 1);
  }
  environment_variable(const environment_variable&) = delete;
  environment_variable& operator=(const environment_variable&) = delete;
  ~environment_variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace weir_test
