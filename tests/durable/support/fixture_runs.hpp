// SPDX-License-Identifier: MIT
// Runs that a journal is kept of, and a directory as text: each file with its size, and its rows
// that are not all zeros.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>

#include "durable/support/stage.hpp"

namespace durable_test {

// ------------------------------------------------------------------------------ files as text

inline constexpr std::size_t fixture_row = 40;

inline std::string directory_as_text(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), directory).string());
  std::sort(names.begin(), names.end());
  std::ostringstream out;
  for (const std::string& name : names) {
    std::ifstream in(directory + "/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    out << "file " << name << " " << bytes.size() << "\n" << std::hex << std::setfill('0');
    for (std::size_t at = 0; at < bytes.size(); at += fixture_row) {
      const std::string row = bytes.substr(at, fixture_row);
      if (row.find_first_not_of('\0') == std::string::npos) continue;
      out << at << " ";
      for (const char c : row)
        out << std::setw(2) << static_cast<unsigned>(static_cast<unsigned char>(c));
      out << "\n";
    }
    out << std::dec;
  }
  return out.str();
}

inline void text_as_directory(const std::string& text, const std::string& directory) {
  namespace fs = std::filesystem;
  fs::create_directories(directory + "/blob");
  std::istringstream in(text);
  std::string path;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first;
    if (!(words >> first)) continue;
    if (first == "file") {
      std::uintmax_t size = 0;
      words >> path >> size;
      path.insert(0, directory + "/");
      std::ofstream(path, std::ios::binary).close();
      fs::resize_file(path, size);
      continue;
    }
    std::string digits;
    words >> digits;
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(std::stoll(first, nullptr, 16));
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
      file.put(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
}

// ------------------------------------------------------------------------------ handlers

/// The service that these runs call is down while their journal is written.
inline bool fixture_world_is_down = false;
/// Not in the journal: what the handlers have told since the process began.
inline std::string fixture_question;

/// Two steps around a sleep of an hour.
inline task<int> fx_steps(int n) {
  const int a = co_await weir::step("one", [&] { return effect("one"), n + 1; });
  co_await weir::sleep(1h);
  const int b = co_await weir::step("two", [&] { return effect("two"), n + 2; });
  co_return a * 100 + b;
}

inline task<std::string> fx_asks(int n) {
  auto answer = weir::awakeable<std::string>("answer");
  fixture_question = answer.id();
  co_await weir::step("publish", [&] { effect("publish " + std::to_string(n)); });
  co_return "told " + co_await weir::with_timeout(1000h, answer.wait());
}

inline task<int> fx_child(int n) { co_return n + co_await weir::signal<int>("go").wait(); }

inline task<int> fx_calls(int n) {
  const std::string sent = co_await weir::send("fx_quick", n);
  const int called = co_await weir::call<int>("fx_child", n, {.id = "the child"});
  co_return called * 10 + static_cast<int>(sent.empty());
}

inline task<int> fx_retries(int n) {
  const weir::step_options patient{.retry = {.attempts = 1000, .base = 1h}};
  auto body = [&]() -> int {
    if (fixture_world_is_down) throw std::runtime_error("the service is down");
    return n;
  };
  co_return co_await weir::step("patient", body, patient);
}

inline task<int> fx_quick(int n) { co_return n; }

inline task<int> fx_fails(int) {
  throw weir::terminal_error("no luck");
  co_return 0;
}

inline task<int> fx_sleeps(int) {
  co_await weir::sleep(100'000h);
  co_return 0;
}

inline task<int> fx_late_step(int n) {
  co_await weir::sleep(2h);
  co_return co_await weir::step("late", [&] { return n; });
}

/// Fibers, a promise, a race, and a cancellation that became a value.
inline task<std::string> fx_fibers(int n) {
  auto nap = []() -> task<> { co_await weir::sleep(10'000h); };
  const auto ended = co_await weir::absorb(nap());
  auto settles = [](int v) -> task<int> {
    auto p = weir::promise<int>("p");
    co_await weir::sleep(1ms);
    co_return co_await p.resolve(v) ? 1 : 0;
  };
  auto hears = []() -> task<int> {
    auto p = weir::promise<int>("p");
    co_return co_await p.wait();
  };
  auto [a, b] = co_await weir::all(settles(n), hears());
  auto [c, d] = co_await weir::all(fx_late_step(n), fx_late_step(n + 1));
  std::string text = ended.is_cancelled() ? "absorbed" : "slept";
  for (const int v : {a, b, c, d}) text += " " + std::to_string(v);
  co_return text;
}

/// Does not come to rest until it hears a signal: its position is recorded.
inline task<int> fx_restless(int n) {
  int heard = 0;
  auto spins = [&]() -> task<int> {
    while (heard == 0) co_await weir::yield();
    co_return 0;
  };
  auto hears = [&]() -> task<int> {
    heard = co_await weir::signal<int>("rest").wait();
    co_return 0;
  };
  (void)co_await weir::all(spins(), hears());
  co_await weir::sleep(1h);
  co_return n + heard;
}

inline task<int> fx_deadlocks(int) {
  weir::event never;
  co_await never.wait();
  co_return 0;
}

/// The code that wrote the journal had another step here.
inline task<int> fx_changed(int n) {
  const char* const name = fixture_world_is_down ? "before" : "after";
  int a = -n;
  try {
    a = co_await weir::step(name, [&] { return n; });
  } catch (const weir::terminal_error&) {
    note("skipped");
  }
  co_await weir::sleep(1h);
  co_return a;
}

/// The process dies in the step.
inline task<int> fx_dies(int n) {
  co_return co_await weir::step("dies", [&] { return effect("dies"), n; });
}
inline task<std::string> fx_dies_once(int n) {
  try {
    co_return std::to_string(co_await weir::step_once("dies once", [&]() -> task<int> {
      co_await weir::sleep(100h);
      co_return n;
    }));
  } catch (const weir::error& e) {
    co_return e.code() == errc::outcome_unknown ? "unknown" : e.what();
  }
}

inline void add_fixture_handlers(durable::engine& e) {
  e.add("fx_steps", fx_steps);
  e.add("fx_asks", fx_asks);
  e.add("fx_child", fx_child);
  e.add("fx_calls", fx_calls);
  e.add("fx_retries", fx_retries);
  e.add("fx_quick", fx_quick);
  e.add("fx_fails", fx_fails);
  e.add("fx_sleeps", fx_sleeps);
  e.add("fx_fibers", fx_fibers);
  e.add("fx_restless", fx_restless);
  e.add("fx_deadlocks", fx_deadlocks);
  e.add("fx_changed", fx_changed);
  e.add("fx_dies", fx_dies);
  e.add("fx_dies_once", fx_dies_once);
}

/// Starts all of them and lets them get as far as they can in a minute.
inline task<> play_fixture(durable::engine& e) {
  fixture_world_is_down = true;
  const int n = 7;
  for (const char* name : {"steps", "asks", "calls", "retries", "quick", "fails", "sleeps",
                           "fibers", "restless", "deadlocks", "changed", "dies_once"}) {
    const std::string handler = std::string("fx_") + name;
    (void)co_await e.start<int>(handler, {.id = name}, n);
  }
  e.add("fx_gone", fx_steps);
  (void)co_await e.start<int>("fx_gone", {.id = "gone", .idempotency = "once"}, n);
  const int signalled = 5;
  (void)co_await e.signal("restless", "rest", signalled);
  co_await weir::sleep(10s);
  e.cancel("sleeps", "enough");
  e.cancel("fibers", "absorb this");
  co_await weir::sleep(50s);
}

}  // namespace durable_test
