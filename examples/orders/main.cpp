// SPDX-License-Identifier: MIT
// A shop that takes orders and completes them although its process is killed in between.
//
//   orders            plays about 15 seconds: orders, a SIGKILL, a second process, the verdict
//   orders --serve    keeps running until Ctrl-C; kill -9 it and start it again: it continues
//   orders --fast     the scenario in a second, without anything that depends on the machine
//   orders --dir <d>  where the journal and the ledger are
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.hpp"
#include "shop.hpp"

namespace {

using namespace std::chrono_literals;
using shop::settings;
namespace fs = std::filesystem;

struct arguments {
  bool serve = false;
  bool fast = false;
  fs::path dir;
};

/// The summary must not appear twice, so what is buffered is written before the process forks.
pid_t fork_flushed() {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork: " + std::string(std::strerror(errno)));
  return child;
}

/// What a process of the shop does; returns its exit code.
int live(const settings& s) {
  try {
    shop::back_office office(s);
    weir::run({.name = "shop"}, shop::keep_shop(office));
    shop::save_counts(s);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "\nprocess %d of the shop failed: %s\n", s.life, e.what());
    return 1;
  }
}

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

/// Runs one process of the shop to its end; returns its wait status, -1 if it had to be
/// stopped.
int watch_life(const settings& s, progress& line) {
  const pid_t child = fork_flushed();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive its parent
    std::exit(live(s));
  }
  const auto limit = std::chrono::steady_clock::now() + 50s;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > limit) {
      std::fprintf(stderr, "\nprocess %d does not finish its orders; see %s\n", s.life,
                   s.dir.c_str());
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;  // neither exited nor killed as planned
    }
    std::this_thread::sleep_for(100ms / s.hurry);
    line.show(s);
  }
  line.end_line();
  return status;
}

int play(settings s, bool fast) {
  progress line(fast);
  const int deadly = s.dies_at_payment;
  std::printf("the shop takes %d orders; its process is killed in the middle of payment %d\n",
              s.orders, deadly);
  const int first = watch_life(s, line);
  if (!WIFSIGNALED(first) || WTERMSIG(first) != SIGKILL)
    throw std::runtime_error("the first process was to be killed, but ended with wait status " +
                             std::to_string(first));
  std::puts("killed: SIGKILL, no destructor has run; a second process opens the same journal");

  s.life = 2;
  s.dies_at_payment = 0;
  const int second = watch_life(s, line);
  shop::report r = shop::examine(s);
  if (!WIFEXITED(second) || WEXITSTATUS(second) != 0)
    r.problems.push_back("the second process ended with wait status " + std::to_string(second));
  shop::print(r, s, !fast);
  return r.problems.empty() ? 0 : 1;
}

int serve(settings s) {
  s.orders = 0;
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

arguments parse(int argc, char** argv) {
  arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--serve") {
      a.serve = true;
    } else if (word == "--fast") {
      a.fast = true;
    } else if (word == "--dir" && i + 1 < argc) {
      a.dir = argv[++i];
    } else {
      throw std::runtime_error("unknown argument '" + std::string(word) +
                               "'; usage: orders [--serve | --fast] [--dir <path>]");
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
  s.dir = choose_dir(a);
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
