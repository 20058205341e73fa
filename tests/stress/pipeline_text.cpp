// SPDX-License-Identifier: MIT
// A random program over streams as text.
#include <array>
#include <sstream>

#include "stress/pipeline_plan.hpp"

namespace fuzz {

namespace {

constexpr const char* await_names[] = {"nothing",
                                       "yield",
                                       "sleep",
                                       "queue.next",
                                       "event.wait",
                                       "mutex.lock",
                                       "acquire",
                                       "future",
                                       "race(sleep,sleep)",
                                       "any(sleep,sleep)",
                                       "race(queue.next,sleep)",
                                       "with_timeout(long,sleep)",
                                       "with_timeout(short,sleep)",
                                       "with_timeout(queue.next)",
                                       "inner.next",
                                       "with_timeout(inner.next)",
                                       "agent.call",
                                       "agent.send",
                                       "with_timeout(long,call)",
                                       "with_timeout(short,call)",
                                       "race(call,sleep)",
                                       "any(call,sleep)",
                                       "with_timeout(task)",
                                       "race(task,task)",
                                       "all(sleep,sleep)",
                                       "all(call,call)",
                                       "settle(task)",
                                       "with_scope(child)",
                                       "shield(sleep)",
                                       "on(loop)",
                                       "blocking",
                                       "suspend"};
static_assert(std::size(await_names) == static_cast<std::size_t>(awaits::count));

constexpr const char* op_names[] = {"generator",
                                    "queue",
                                    "channel",
                                    "broadcast",
                                    "replay",
                                    "state",
                                    "interval",
                                    "iota",
                                    "from",
                                    "unfold",
                                    "once",
                                    "empty",
                                    "never",
                                    "from_callback",
                                    "retry_stream",
                                    "defer_stream",
                                    "share",
                                    "passed_on",
                                    "passed_on_with_timeout",
                                    "map",
                                    "filter",
                                    "filter_map",
                                    "scan",
                                    "enumerate",
                                    "tap",
                                    "dedup",
                                    "distinct",
                                    "start_with",
                                    "take",
                                    "take_while",
                                    "take_until(sleep)",
                                    "drop",
                                    "drop_while",
                                    "take_last",
                                    "skip_last",
                                    "flat_map(range)",
                                    "flat_map(generator)",
                                    "flat_map(n,generator)",
                                    "switch_map(generator)",
                                    "map_async",
                                    "map_async(failing)",
                                    "map_async_unordered",
                                    "map_async(call)",
                                    "buffered",
                                    "buffered(true)",
                                    "limit",
                                    "chunks|flat",
                                    "chunks(n,d)|flat",
                                    "ready_chunks|flat",
                                    "sliding",
                                    "group_by|flat",
                                    "buffer(wait)",
                                    "buffer(drop_oldest)",
                                    "buffer(drop_newest)",
                                    "buffer(conflate)",
                                    "conflate",
                                    "throttle",
                                    "debounce",
                                    "sample",
                                    "delay",
                                    "timeout_each(long)",
                                    "timeout_each(short)",
                                    "catch_with",
                                    "finally(plain)",
                                    "finally(task)",
                                    "merge",
                                    "concat",
                                    "zip",
                                    "combine_latest",
                                    "race_streams",
                                    "with_latest_from"};
static_assert(std::size(op_names) == static_cast<std::size_t>(op::count));

constexpr const char* permit_names[] = {"number", "counting", "shared", "any", "rate", "adaptive"};
constexpr const char* pull_names[] = {"next",
                                      "with_timeout(next)",
                                      "race(next,sleep)",
                                      "any(next,sleep)",
                                      "race(next,queue.next)",
                                      "settle(next)",
                                      "next_for",
                                      "next in a child",
                                      "next in a cancelled child"};
static_assert(std::size(pull_names) == static_cast<std::size_t>(pull::count));
constexpr const char* consumer_names[] = {
    "pulls", "to_vector", "for_each", "for_each(task)", "count",  "fold",    "reduce",
    "first", "last",      "find",     "any_of",         "all_of", "none_of", "background for_each",
    "share"};
static_assert(std::size(consumer_names) == static_cast<std::size_t>(consumer::count));
constexpr const char* ending_names[] = {"to the end", "then destroyed", "then closed"};

template <std::size_t N, class E>
const char* name_of(const char* const (&names)[N], E value) {
  return names[static_cast<std::size_t>(value)];
}

void print(std::ostream& out, const node& n, int indent) {
  out << std::string(static_cast<std::size_t>(indent), ' ') << name_of(op_names, n.what)
      << " a=" << n.a << " b=" << n.b << " c=" << n.c << " " << name_of(permit_names, n.by);
  if (!n.steps.empty()) {
    out << " {";
    for (const step& s : n.steps) out << " " << name_of(await_names, s.what) << ":" << s.ms;
    out << " }";
  }
  out << "\n";
  for (const node& i : n.inputs) print(out, i, indent + 2);
}

void print(std::ostream& out, const usage& u) {
  out << "consumer: " << name_of(consumer_names, u.what);
  if (u.governed) out << ", " << u.width << " by " << name_of(permit_names, u.by);
  out << ", items " << u.items << " " << name_of(ending_names, u.end);
  if (u.outside) out << ", stream outlives its scope";
  if (u.hops) out << ", two scopes pull";
  if (u.cancel_after >= 0) out << ", cancelled after " << u.cancel_after << " ms";
  out << "\n  pulls:";
  for (const pull p : u.ways) out << " " << name_of(pull_names, p) << ";";
  out << " patience " << u.patience << " ms; pauses:";
  for (const int p : u.pauses) out << " " << p;
  out << "\n";
}

}  // namespace

std::string to_text(const pipeline_plan& plan) {
  std::ostringstream out;
  out << "seed " << plan.seed << ", order " << name_of(plan.in) << "\n";
  print(out, plan.stream, 2);
  print(out, plan.use);
  if (plan.hostile.trap_every > 0) {
    out << "destructors: every " << plan.hostile.trap_every << ". does " << plan.hostile.trap_kind
        << "\n";
  }
  if (plan.hostile.fuse > 0) out << "move " << plan.hostile.fuse << " throws\n";
  return out.str();
}

}  // namespace fuzz
