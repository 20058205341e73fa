// SPDX-License-Identifier: MIT
// A shop that takes orders over HTTP and completes them although its process is killed in between.
//
//   orders            plays about 15 seconds: orders, a SIGKILL, a second process, the verdict
//   orders --serve    keeps running until Ctrl-C; kill -9 it and start it again: it continues
//   orders --fast     the scenario in a second, without anything that depends on the machine
//   orders --dir <d>  where the journal and the ledger are
//   orders --port <n> where --serve listens; otherwise at 8080 or the next free port
//
// To read: checkout.cpp is what one order goes through, stock.cpp the shelves, shop.cpp who works
// in the shop, front.cpp its HTTP face, world.cpp the customers; report.cpp checks everything.
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/io.hpp>

#include "process.hpp"
#include "report.hpp"
#include "shop.hpp"
#include "world.hpp"

namespace {

using namespace std::chrono_literals;
using shop::settings;
namespace fs = std::filesystem;

struct arguments {
  bool serve = false;
  bool fast = false;
  fs::path dir;
  int port = 0;
  // Of a process that keeps the shop for another one, which started it.
  int keep = 0;
  int hurry = 1;
  int dies_at = 0;
};

// ------------------------------------------------------------------ a process of the shop

/// Keeps the shop until SIGTERM; returns the exit code.
int keep(const settings& s) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive the process that started it
  try {
    shop::back_office office(s);
    weir::run({.name = "shop", .handle_signals = true}, shop::keep_shop(office));
  } catch (const weir::cancelled_error&) {
    shop::save_counts(s);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "\nprocess %d of the shop failed: %s\n", s.life, e.what());
  }
  return 1;
}

// ------------------------------------------------------------------ the scenario

/// One line about the ledger, rewritten on a terminal; elsewhere one every two seconds.
class progress {
 public:
  explicit progress(bool silent) : silent_(silent) {}
  void show(const settings& s) {
    if (silent_ || (!terminal_ && ++asked_ % 20 != 0)) return;
    int submitted = 0, closed = 0, captured = 0;
    for (const shop::entry& e : shop::read_ledger(shop::ledger_of(s.dir))) {
      if (e.again) continue;
      submitted += e.what == "submit";
      captured += e.what == "capture";
      closed += e.what == "close";
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun_;
    std::printf("%s%4.1f s  process %d: %2d of %d orders taken, %2d paid, %2d finished%s",
                terminal_ ? "\r" : "", elapsed.count(), s.life, submitted, s.orders, captured,
                closed, terminal_ ? "" : "\n");
    std::fflush(stdout);
  }
  void end_line() const {
    if (!silent_ && terminal_) std::puts("");
  }

 private:
  bool silent_;
  bool terminal_ = ::isatty(STDOUT_FILENO) == 1;
  int asked_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

std::runtime_error unplanned(const char* which, int status) {
  return std::runtime_error("the " + std::string(which) + " process of the shop ended with " +
                            "wait status " + std::to_string(status));
}

/// What the customers have seen.
struct seen {
  int sent_again = 0;               // because there was no answer
  std::map<std::string, int> left;  // of each item, in the end
};

/// Two processes of the shop, one after the other, and the customers of both. This process owns the
/// listening socket and lends it to the shop, as systemd does: while there is no shop, new
/// connections wait instead of being refused.
weir::task<seen> two_lives(settings& s, progress& line) {
  auto door = co_await weir::io::listen();
  shop::world outside({.port = door.port(),
                       .orders = s.orders,
                       .early = s.orders / 2,
                       .pace = s.pace,
                       .thinking = 700ms / s.hurry,
                       .hurry = s.hurry});
  seen all;
  auto lives = [&](weir::scope& both) -> weir::task<> {
    auto report = [&]() -> weir::task<> {
      for (;; line.show(s)) co_await weir::sleep(100ms / s.hurry);
    };
    both.background(report, {.name = "progress"});
    auto customers = both.spawn(outside.play(), {.name = "customers"});

    shop::process first(s, door.native_handle());
    const int end = co_await first.ended();
    line.end_line();
    if (!WIFSIGNALED(end) || WTERMSIG(end) != SIGKILL) throw unplanned("first", end);
    std::puts("killed: SIGKILL, no destructor has run; a second process opens the same journal,");
    std::puts("and customers without an answer send their orders again");

    s.life = 2;
    s.dies_at_payment = 0;
    shop::process second(s, door.native_handle());
    outside.late_ones_come();
    // The shop has no reason to end before its customers do.
    // (Two statements: an exception that waits for its co_await is lost when that is cancelled.)
    auto early = [&]() -> weir::task<> {
      const int status = co_await second.ended();
      throw unplanned("second", status);
    };
    co_await weir::race(customers, early());
    for (const char* const item : {"kettle", "teapot"}) {
      const int left = co_await outside.left_of(item);
      all.left[item] = left;
    }
    second.close();
    const int last = co_await second.ended();
    line.end_line();
    if (!WIFEXITED(last) || WEXITSTATUS(last) != 0) throw unplanned("second", last);
  };
  co_await weir::with_timeout(60s, weir::with_scope({.name = "scenario"}, lives));
  all.sent_again = outside.sent_again();
  co_return all;
}

int play(settings s, bool fast) {
  progress line(fast);
  std::printf("the shop takes %d orders over HTTP; its process is killed in payment %d\n", s.orders,
              s.dies_at_payment);
  std::fflush(stdout);
  const seen all = weir::run({.name = "world"}, two_lives(s, line));
  shop::report r = shop::examine(s, all.left);
  r.sent_again = all.sent_again;
  shop::print(r, s, !fast);
  return r.problems.empty() ? 0 : 1;
}

// ------------------------------------------------------------------ a shop that stays open

int serve(settings s) {
  s.pace = 700ms;
  // Each process is a new life; the numbers must differ.
  s.life = static_cast<int>(::getpid());
  std::printf("journal: %s\nCtrl-C closes the shop; kill -9 %d and start it again: it goes on\n",
              shop::journal_of(s.dir).c_str(), s.life);
  std::fflush(stdout);
  shop::back_office office(s);
  try {
    weir::run({.name = "shop", .handle_signals = true}, shop::keep_shop(office));
  } catch (const weir::cancelled_error&) {
    std::puts("\nclosed; orders that are not finished go on at the next start");
  }
  return 0;
}

// ------------------------------------------------------------------ the command line

[[noreturn]] void misused(std::string_view word) {
  throw std::runtime_error("cannot use '" + std::string(word) +
                           "'; usage: orders [--serve [--port <n>] | --fast] [--dir <path>]");
}

int number(std::string_view word, int max) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > max)
    misused(word);
  return value;
}

arguments parse(int argc, char** argv) {
  arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [&]() -> std::string_view {
      if (i + 1 == argc) misused(word);
      return argv[++i];
    };
    if (word == "--serve") {
      a.serve = true;
    } else if (word == "--fast") {
      a.fast = true;
    } else if (word == "--dir") {
      a.dir = value();
    } else if (word == "--port") {
      a.port = number(value(), 65'535);
    } else if (word == "--keep") {
      a.keep = number(value(), 2);
    } else if (word == "--hurry") {
      a.hurry = number(value(), 100);
    } else if (word == "--dies-at") {
      a.dies_at = number(value(), 1000);
    } else {
      misused(word);
    }
  }
  return a;
}

/// A new directory for each scenario; the same one for a shop that continues.
fs::path choose_dir(const arguments& a) {
  if (!a.dir.empty() || a.serve) {
    const fs::path dir =
        a.dir.empty() ? fs::temp_directory_path() / ("weir-shop-" + std::to_string(::getuid()))
                      : a.dir;
    if (!a.serve && fs::exists(shop::ledger_of(dir)))
      throw std::runtime_error(dir.string() + " has orders of an earlier run; give an empty --dir");
    fs::create_directories(dir);
    return dir;
  }
  std::string pattern = (fs::temp_directory_path() / "weir-orders-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error("cannot make " + pattern + ": " + std::strerror(errno));
  return pattern;
}

int run(const arguments& a) {
  settings s;
  if (a.keep > 0) {
    s.dir = a.dir;
    s.life = a.keep;
    s.hurry = a.hurry;
    s.dies_at_payment = a.dies_at;
    s.door = 3;
    return keep(s);
  }
  s.dir = choose_dir(a);
  s.port = a.port;
  if (a.serve) return serve(s);
  s.orders = a.fast ? 20 : 64;
  s.pace = a.fast ? 2ms : 180ms;
  s.hurry = a.fast ? 10 : 1;
  s.dies_at_payment = a.fast ? 6 : 26;
  const int code = play(s, a.fast);
  // The files of a successful quick run are removed; others are kept for inspection.
  if (code == 0 && a.fast && a.dir.empty()) fs::remove_all(s.dir);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "\norders: %s\n", e.what());
    return 2;
  }
}
