// SPDX-License-Identifier: MIT
// Small things that many tests need: errors with a number, a log of what happened in which order,
// tasks that end after a while, and questions about exception pointers.
#pragma once

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "support/sim_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace test_support {

using namespace std::chrono_literals;

struct boom : std::runtime_error {
  explicit boom(int number) : std::runtime_error("boom " + std::to_string(number)), n(number) {}
  int n;
};

struct bang : std::logic_error {
  explicit bang(int number) : std::logic_error("bang " + std::to_string(number)), n(number) {}
  int n;
};

using text_log = std::vector<std::string>;

inline std::string joined(const text_log& log) {
  std::string all;
  for (const std::string& entry : log) {
    if (!all.empty()) all += ',';
    all += entry;
  }
  return all;
}

inline long counted(const text_log& log, std::string_view entry) {
  return static_cast<long>(std::count(log.begin(), log.end(), entry));
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// "file.cpp:42", the way dumps and descriptions write a place.
inline std::string at_line(int line, std::source_location here = std::source_location::current()) {
  std::string_view file = here.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  return std::string(file) + ":" + std::to_string(line);
}

/// Says in the log when it is destroyed.
class end_note {
 public:
  end_note(text_log& log, std::string what) : log_(log), what_(std::move(what)) {}
  end_note(const end_note&) = delete;
  end_note& operator=(const end_note&) = delete;
  ~end_note() { log_.push_back(what_); }

 private:
  text_log& log_;
  std::string what_;
};

template <class E>
bool holds(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// The number of a boom, or -1 for anything else.
inline int boom_of(const std::exception_ptr& error) {
  if (!error) return -1;
  try {
    std::rethrow_exception(error);
  } catch (const boom& e) {
    return e.n;
  } catch (...) {
    return -1;
  }
}

inline std::vector<int> booms_of(const std::vector<std::exception_ptr>& errors) {
  std::vector<int> numbers;
  for (const std::exception_ptr& error : errors) numbers.push_back(boom_of(error));
  return numbers;
}

/// The code of a system_error, or an empty code for anything else.
inline std::error_code code_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::system_error& e) {
    return e.code();
  } catch (...) {
    return {};
  }
}

inline std::string what_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

/// The error that a plain call ends with, or null.
template <class F>
std::exception_ptr thrown_by(F&& f) {
  try {
    (void)std::forward<F>(f)();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// Awaits a task or wait and gives the error that it throws into the awaiting code, or null.
template <class Op>
weir::task<std::exception_ptr> error_of(Op op) {
  try {
    (void)co_await std::move(op);
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

/// Calls `f`, awaits what it returns, and gives the error of either, or null.
template <class F>
weir::task<std::exception_ptr> attempt(F f) {
  try {
    (void)co_await f();
  } catch (...) {
    co_return std::current_exception();
  }
  co_return nullptr;
}

/// The code of the error with which the awaited `make()` ends; empty if it ends well.
template <class F>
weir::task<std::error_code> code_after(F make) {
  const std::exception_ptr error = co_await attempt(make);
  co_return code_of(error);
}

inline long live_timers() { return static_cast<long>(weir::live().timers); }
inline long live_fibers() { return static_cast<long>(weir::live().fibers); }

/// Milliseconds of virtual time.
inline long ms_since(weir::time_point start) {
  return static_cast<long>((weir::now() - start) / 1ms);
}

inline weir::task<int> ready(int value) { co_return value; }

inline weir::task<int> after(weir::duration d, int value) {
  co_await weir::sleep(d);
  co_return value;
}

inline weir::task<int> fails_after(weir::duration d, int number) {
  co_await weir::sleep(d);
  throw boom(number);
}

/// Real time: waits until it holds, without blocking the loop; the watchdog ends what never does.
template <class F>
weir::task<> wait_until(F condition) {
  while (!condition()) co_await weir::sleep(1ms);
}

/// Never ends by itself; when it is cancelled its cleanup takes 30 ms and is logged.
inline weir::task<int> slow_to_stop(text_log& log, std::string name) {
  co_return co_await weir::with_scope([&](weir::scope& s) -> weir::task<int> {
    s.defer([&]() -> weir::task<> {
      co_await weir::sleep(30ms);
      log.push_back(name + " stopped");
    });
    co_await weir::sleep(1h);
    log.push_back("NEVER");
    co_return 0;
  });
}

}  // namespace test_support
