// SPDX-License-Identifier: MIT
// Shared by the tests of agents: agents that count or record their messages, calls that return
// their error code, and events of this loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flow/flow_support.hpp"

namespace weir_test {

using weir::agent_ref;
using weir::agent_state;
using weir::ending;
using weir::sent;

class counter {
 public:
  explicit counter(int start = 0) : count_(start) {}
  void inc(int n) { count_ += n; }
  int get() const { return count_; }
  int fetch_inc() { return count_++; }
  task<int> get_after(weir::duration d) {
    co_await weir::sleep(d);
    co_return count_;
  }
  task<> nap(weir::duration d) { co_await weir::sleep(d); }
  void fail(int n) { throw boom(n); }
  task<> fail_after(weir::duration d, int n) {
    co_await weir::sleep(d);
    throw boom(n);
  }

 private:
  int count_;
};

/// Writes down its life and what it is told.
class scribe {
 public:
  scribe(text_log* log, std::string name) : log_(log), name_(std::move(name)) { say("+" + name_); }
  scribe(const scribe&) = delete;
  scribe& operator=(const scribe&) = delete;
  ~scribe() { say("-" + name_); }

  void note(int n) { say(name_ + std::to_string(n)); }
  /// An asynchronous handler; `<` is its begin, `>` its end, `!` its end by cancellation.
  task<> note_after(weir::duration d, int n) {
    say("<" + std::to_string(n));
    const auto guard = weir::scope_exit(
        [this, n] { say((weir::unwinding() == nullptr ? ">" : "!") + std::to_string(n)); });
    co_await weir::sleep(d);
  }
  void fail(int n) {
    say("fail" + std::to_string(n));
    throw boom(n);
  }
  void leave() { weir::self<scribe>().stop(); }

 private:
  void say(std::string text) { log_->push_back(std::move(text)); }
  text_log* log_;
  std::string name_;
};

/// The code of the error with which a call ends; empty if it ends with a value.
template <class Ref, class... Args>
task<std::error_code> code_of_call(Ref to, Args... args) {
  const std::exception_ptr error = co_await error_of(to.call(args...));
  co_return code_of(error);
}

/// The same of a send.
template <class Ref, class... Args>
task<std::error_code> code_of_send(Ref to, Args... args) {
  const std::exception_ptr error = co_await error_of(to.send(args...));
  co_return code_of(error);
}

/// How often an event of that name, of that object, happened on this loop.
inline auto count_events(std::string_view name, std::string_view object, int& number) {
  return weir::on_event([=, &number](const weir::event_info& e) {
    if (e.name == name && e.object == object) ++number;
  });
}

/// Runs `body(scope&)` in a scope of its own and gives the error with which the scope ends, or
/// null.
template <class F>
task<std::exception_ptr> error_of_scope(weir::scope_options options, F& body) {
  auto inside = [&body](weir::scope& s) -> task<> { co_await body(s); };
  try {
    co_await weir::with_scope(options, inside);
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}
template <class F>
task<std::exception_ptr> error_of_scope(F& body) {
  return error_of_scope(weir::scope_options{}, body);
}

inline weir::scope_options grace_of(weir::duration d) {
  weir::scope_options options;
  options.grace = d;
  return options;
}

inline weir::agent_options options_on(weir::loop_ref where, weir::name name) {
  weir::agent_options options;
  options.name = name;
  options.on = where;
  return options;
}

}  // namespace weir_test
