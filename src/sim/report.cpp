// SPDX-License-Identifier: MIT
#include <weir/sim/explore.hpp>

#include <cinttypes>
#include <cstdio>
#include <ostream>

#include <unistd.h>

#include "sim/explore.hpp"

namespace weir {

namespace {

constexpr std::size_t longest_trace_shown = 16'000;
constexpr auto quiet_for = std::chrono::seconds(1);
constexpr auto between_lines = std::chrono::milliseconds(200);

std::string quantity(std::uint64_t number, const char* what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

void print_replay(std::ostream& out, const sim::trace& trace, bool livelock) {
  const std::string text = trace.text();
  if (trace.has_choices()) {
    out << "trace (" << quantity(trace.preemptions(), "preemption") << "):\n  ";
    if (text.size() <= longest_trace_shown) {
      out << text << "\n";
    } else {
      out << text.substr(0, longest_trace_shown) << " ... ("
          << quantity(trace.choices().size(), "choice") << "; report.trace() has all of them)\n";
    }
  }
  out << "replay it:\n";
  if (trace.has_choices())
    out << "  weir::sim::replay(weir::sim::trace::parse(\""
        << (text.size() <= longest_trace_shown ? text : std::string("<the trace>"))
        << "\"), program)\n";
  if (trace.strategy().what == sim::strategy::kind::dfs) return;
  if (!livelock)  // a seed alone carries no step limit
    out << "  weir::sim::replay(" << trace.seed() << ", weir::sim::" << to_string(trace.strategy())
        << ", program)\n";
  out << "  WEIR_SIM_SEED=" << trace.seed() << " WEIR_SIM_RUNS=1 and the same command\n";
}

}  // namespace

namespace sim {

std::ostream& operator<<(std::ostream& out, const report& r) {
  out << "explore: " << (r.ok() ? "ok" : "failed") << " after "
      << quantity(static_cast<std::uint64_t>(r.runs()), "run") << ", "
      << quantity(static_cast<std::uint64_t>(r.steps()), "step");
  if (r.exhausted()) out << ", all that there are";
  if (r.ok()) return out << "\n";
  const bool failing_run = r.failures() > 0;
  if (failing_run) out << ", seed " << r.seed() << ", strategy " << to_string(r.trace().strategy());
  out << "\n" << r.message() << "\n";
  if (!r.tree().empty()) out << "the tree at the failure:\n" << r.tree();
  if (failing_run) print_replay(out, r.trace(), r.livelock_);
  return out;
}

}  // namespace sim

namespace detail {

progress::progress(std::int64_t runs)
    : runs_(runs), terminal_(::isatty(STDERR_FILENO) == 1), begun_(clock()) {
  next_ = begun_ + quiet_for;
}

progress::~progress() {
  if (shown_) std::fputs("\n", stderr);
}

void progress::show(std::int64_t done, std::int64_t failures) {
  if (!terminal_) return;
  const time_point now = clock();
  if (now < next_) return;
  next_ = now + between_lines;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  std::fprintf(stderr,
               "\rexplore: %" PRId64 " of %" PRId64 " runs, %.0f runs/s, %" PRId64 " failures ",
               done, runs_, static_cast<double>(done) / seconds, failures);
  std::fflush(stderr);
}

}  // namespace detail
}  // namespace weir
