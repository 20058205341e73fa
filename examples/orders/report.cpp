// SPDX-License-Identifier: MIT
// Whether every order was completed exactly once: everything is counted, nothing is assumed.
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "stock.hpp"
#include "story.hpp"

namespace shop {

namespace {

using durable_info = weir::durable::run_info;

/// What steps do, in contrast to what clerks and customers do.
bool is_effect(const std::string& what) { return what != "submit" && what != "answer"; }

/// The runs in the journal. No handler is added, so none of them can continue here: an unfinished
/// run is listed as blocked.
weir::task<std::vector<durable_info>> list_runs(const settings& s) {
  const std::string journal = journal_of(s.dir).string();
  auto body = [](weir::durable::engine& e) -> weir::task<std::vector<durable_info>> {
    co_await e.open();
    co_return e.list({.handler = "checkout"});
  };
  co_return co_await weir::durable::with_engine({.path = journal, .segment_bytes = 1 << 20}, body);
}

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }
std::string after_first_word(const std::string& text) {
  const auto space = text.find(' ');
  return space == std::string::npos ? std::string() : text.substr(space + 1);
}

/// A worker that starts for the second time in one process was restarted.
int count_restarts(const std::vector<entry>& ledger) {
  std::set<int> lives;
  int starts = 0;
  for (const entry& e : ledger) {
    if (e.what != "start") continue;
    lives.insert(e.life);
    ++starts;
  }
  return starts - static_cast<int>(lives.size());
}

/// How the order of this number must end.
std::string expected_ending(int number) {
  switch (story_of(number)) {
    case story::plain:
    case story::approved:
      return "shipped";
    case story::refused:
      return "refused";
    case story::declined:
      return "failed card declined";
    case story::unanswered:
      return "failed nobody approved it in time";
    case story::cancelled:
      return "cancelled user: " + change_of_mind(number);
  }
  return {};
}

weir::durable::run_state expected_state(story s) {
  using weir::durable::run_state;
  if (s == story::cancelled) return run_state::cancelled;
  return s == story::declined || s == story::unanswered ? run_state::failed : run_state::completed;
}

/// Everything about one order.
class examined_order {
 public:
  examined_order(int number, const std::vector<entry>& ledger, report& r)
      : id_(id_of(number)), number_(number), report_(r) {
    for (const entry& e : ledger)
      if (e.order == id_) lines_.push_back(e);
  }

  void check(const std::vector<durable_info>& runs) {
    check_effects();
    check_repetitions();
    check_ending();
    check_run(runs);
  }

 private:
  void problem(const std::string& what) { report_.problems.push_back(id_ + ": " + what); }

  int times(std::string_view what) const {
    return static_cast<int>(std::count_if(
        lines_.begin(), lines_.end(), [&](const entry& e) { return e.what == what && !e.again; }));
  }

  /// What was reserved was shipped or released, what was paid was shipped or paid back, once.
  void check_effects() {
    const char* const names[] = {"reserve", "capture", "ship", "release", "refund", "close"};
    for (const char* what : names) {
      report_.effects[what] += times(what);
      if (times(what) > 1) problem(std::string(what) + " was done more than once");
    }
    if (times("submit") != 1 || times("reserve") != 1 || times("close") != 1)
      problem("it was not submitted, reserved and closed once");
    if (times("reserve") != times("ship") + times("release"))
      problem("the stock is wrong: reserved, but neither shipped nor released");
    if (times("capture") != times("ship") + times("refund"))
      problem("the money is wrong: captured, but neither shipped nor refunded");
  }

  /// A crash repeats the step that was in flight, and no other: everything before it was in the
  /// journal.
  void check_repetitions() {
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      if (!line->again || !is_effect(line->what)) continue;
      ++report_.repeated;
      const auto last_of_other_life =
          std::find_if(std::make_reverse_iterator(line), lines_.rend(),
                       [&](const entry& e) { return e.life != line->life && is_effect(e.what); });
      if (last_of_other_life == lines_.rend() || last_of_other_life->what != line->what)
        problem(line->what + " was repeated although its result was recorded");
    }
  }

  void check_ending() {
    const auto end = std::find_if(lines_.begin(), lines_.end(),
                                  [](const entry& e) { return e.what == "close" && !e.again; });
    if (end == lines_.end()) return problem("it was never closed");
    if (end->detail != expected_ending(number_))
      problem("it ended as '" + end->detail + "', not as '" + expected_ending(number_) + "'");
    const std::string how = first_word(end->detail);
    ++report_.endings[how];
    if (how == "failed") ++report_.failures[after_first_word(end->detail)];
    if (how == "cancelled") ++report_.reasons[after_first_word(end->detail)];
    report_.latencies_ms.push_back(end->at_ms - lines_.front().at_ms);
  }

  void check_run(const std::vector<durable_info>& runs) {
    const auto is_this = [&](const durable_info& i) { return i.id == id_; };
    if (std::count_if(runs.begin(), runs.end(), is_this) != 1)
      return problem("the journal does not have exactly one run of it");
    const durable_info& run = *std::find_if(runs.begin(), runs.end(), is_this);
    if (run.state != expected_state(story_of(number_)))
      problem("its run is " + std::string(to_string(run.state)) + " " + run.message);
    check_version(run.version);
  }

  /// The version that it began with has brought it to its end: only version 2 checks for fraud.
  void check_version(int version) {
    ++report_.versions[version];
    const auto begun = std::find_if(lines_.begin(), lines_.end(),
                                    [](const entry& e) { return e.what == "submit"; });
    if (begun == lines_.end()) return;
    if (version == 1 && begun->life != first_life) problem("a new order was taken by version 1");
    if (times("check") != (version == 2 ? 1 : 0))
      problem("version " + std::to_string(version) + " has checked for fraud " +
              std::to_string(times("check")) + " times");
  }

  std::string id_;
  int number_;
  report& report_;
  std::vector<entry> lines_;
};

/// What has left the shelves was shipped.
void check_stock(const std::vector<entry>& ledger, report& r) {
  for (const auto& [item, left] : r.left) {
    const auto leaves = [name = item](const entry& e) {
      return e.what == "ship" && e.detail == name && !e.again;
    };
    const auto shipped = std::count_if(ledger.begin(), ledger.end(), leaves);
    if (left + shipped != shelf{}.left)
      r.problems.push_back(std::to_string(left) + " of '" + item + "' are left, but " +
                           std::to_string(shipped) + " were shipped");
  }
}

std::filesystem::path counts_of(const settings& s) { return s.dir / "counts.txt"; }

std::string listed(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " (" + name + ")";
  return text;
}

void print_endings(const report& r) {
  const auto count = [&](const char* how) {
    return r.endings.contains(how) ? r.endings.at(how) : 0;
  };
  std::printf("\n%d orders, finished as\n", r.orders);
  std::printf("  shipped    %3d\n", count("shipped"));
  std::printf("  refused    %3d  the desk said no\n", count("refused"));
  std::printf("  failed     %3d  %s\n", count("failed"), listed(r.failures).c_str());
  std::printf("  cancelled  %3d  %s\n", count("cancelled"), listed(r.reasons).c_str());
}

void print_effects(const report& r) {
  const auto count = [&](const char* what) {
    return r.effects.contains(what) ? r.effects.at(what) : 0;
  };
  std::printf("stock: %d reserved = %d shipped + %d released\n", count("reserve"), count("ship"),
              count("release"));
  std::printf("shelves:");
  const char* comma = " ";
  for (const auto& [item, left] : r.left) {
    std::printf("%s%d of %d %ss left", comma, left, shelf{}.left, item.c_str());
    comma = ", ";
  }
  std::puts("");
  std::printf("money: %d captured = %d shipped + %d refunded\n", count("capture"), count("ship"),
              count("refund"));
}

void print_times(const report& r, const settings& s) {
  const auto at = [&](std::size_t percent) {
    return r
        .latencies_ms[std::min(r.latencies_ms.size() * percent / 100, r.latencies_ms.size() - 1)];
  };
  if (!r.latencies_ms.empty())
    std::printf("latency, crash included: p50 %lld ms, p95 %lld ms, max %lld ms\n",
                static_cast<long long>(at(50)), static_cast<long long>(at(95)),
                static_cast<long long>(r.latencies_ms.back()));
  std::ifstream counts(counts_of(s));
  for (std::string line; std::getline(counts, line);) std::printf("%s\n", line.c_str());
}

}  // namespace

report examine(const settings& s, const std::map<std::string, int>& left) {
  report r;
  r.orders = s.orders;
  r.left = left;
  const std::vector<entry> ledger = read_ledger(ledger_of(s.dir));
  const std::vector<durable_info> runs = weir::run(list_runs(s));
  r.restarts = count_restarts(ledger);
  for (int number = 1; number <= s.orders; ++number) examined_order(number, ledger, r).check(runs);
  check_stock(ledger, r);
  std::sort(r.latencies_ms.begin(), r.latencies_ms.end());
  return r;
}

void print(const report& r, const settings& s, bool times) {
  print_endings(r);
  print_effects(r);
  // How many steps were in flight when the process died depends on the machine.
  if (times) {
    std::printf("steps repeated because of the crash: %d, with one effect each\n", r.repeated);
    std::printf(
        "versions of checkout: %d orders were begun by the first and ended by it, %d by the "
        "second\n",
        r.versions.contains(1) ? r.versions.at(1) : 0,
        r.versions.contains(2) ? r.versions.at(2) : 0);
    std::printf("requests sent again because of it: %d\n", r.sent_again);
    std::printf("workers started again by their supervisor: %d\n", r.restarts);
    print_times(r, s);
    std::printf("journal: %s\n", journal_of(s.dir).c_str());
  } else if (r.repeated > 0) {
    std::puts("the payment that the crash interrupted was repeated, with one effect");
  }
  if (!times && r.versions.contains(1) && r.versions.contains(2))
    std::puts("orders begun by version 1 of the program were ended by it, new ones by version 2");
  for (const std::string& problem : r.problems) std::printf("PROBLEM: %s\n", problem.c_str());
  std::puts(r.problems.empty() ? "every order finished exactly once"
                               : "NOT every order finished exactly once");
}

void save_counts(const settings& s) {
  const weir::process_stats counted = weir::stats();
  std::ofstream out(counts_of(s));
  out << "second process: hedges " << counted.counter("hedge", "hedge") << ", retries "
      << counted.counter("retry", "retry") << ", north's breaker opened "
      << counted.counter("north", "opened") << '\n';
  using weir::cancel_kind;
  out << "cancelled in it, by reason:";
  const char* comma = " ";
  for (cancel_kind kind : {cancel_kind::user, cancel_kind::parent, cancel_kind::hedge_lost,
                           cancel_kind::timeout, cancel_kind::shutdown, cancel_kind::scope_ended})
    if (counted.cancels(kind) > 0) {
      out << comma << counted.cancels(kind) << ' ' << to_string(kind);
      comma = ", ";
    }
  out << '\n';
}

}  // namespace shop
