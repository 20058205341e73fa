// SPDX-License-Identifier: MIT
// Small programs with a bug that only some orders show, each beside its repair: what the simulation
// is measured with. It must find every bug, repeat it, shrink it, and find nothing in the repairs.
//
// How the numbers were derived. Under the adversary every await ends a turn: a ready one
// (`quick_call`), a call of a task, a `yield`; a wait that parks ends two (one before it starts,
// one to park). With no preemption the run is that of production: a fiber that can continue does,
// although the turn has ended, and one that yields or is woken goes to the back of the queue. Each
// choice of another fiber is one preemption; the preempted fiber goes to the back of the queue,
// too. The comment on a program gives a schedule with as few as possible: `A1 | B1 B2 A2` reads
// "the first turn of A, then a preemption, both turns of B, and the second turn of A". Turns are
// counted from the start of a fiber, or from where the comment says. A test proves by dfs that
// fewer preemptions do not do.
#pragma once

#include <cstddef>
#include <string_view>

#include <weir/sim.hpp>
#include <weir/weir.hpp>

#include "sim/corpus_ends.hpp"
#include "sim/corpus_loops.hpp"
#include "sim/corpus_state.hpp"
#include "sim/corpus_wakeups.hpp"

namespace corpus {

using maker = weir::task<> (*)(weir::sim::world&);

struct entry {
  std::string_view name;
  maker buggy;
  maker fixed;
  weir::sim::strategy found_by;
  std::size_t preemptions;   // that the failure needs; with any fewer the program is correct
  weir::errc code;           // of the failure
  std::string_view message;  // is part of what it says
};

/// A program that needs one loop only.
template <weir::task<> (*Program)()>
weir::task<> alone(weir::sim::world&) {
  return Program();
}

// Every buggy program passes in plain FIFO order, so each needs a preemption. The strategies are
// the weakest of their kind that find the bug. The livelock is for dfs: it lasts only while two
// fibers keep in step, as they do where nobody is preempted any more, and not by chance.
inline constexpr entry table[] = {
    {"lost_update", alone<lost_update::buggy>, alone<lost_update::fixed>, weir::sim::pct(2), 1,
     weir::errc::always_violated, "both deposits are in the balance"},
    {"check_then_act", alone<check_then_act::buggy>, alone<check_then_act::fixed>,
     weir::sim::dfs(1), 1, weir::errc::always_violated, "no seat is sold twice"},
    {"half_written_state", alone<half_written_state::buggy>, alone<half_written_state::fixed>,
     weir::sim::pct(2), 1, weir::errc::always_violated, "host and port belong together"},
    {"stale_index", alone<stale_index::buggy>, alone<stale_index::fixed>, weir::sim::pct(2), 1,
     weir::errc::always_violated, "the order that was asked for is filled"},
    {"aba_free_list", alone<aba_free_list::buggy>, alone<aba_free_list::fixed>, weir::sim::pct(2),
     1, weir::errc::always_violated, "no buffer has two owners"},
    {"double_completion", alone<double_completion::buggy>, alone<double_completion::fixed>,
     weir::sim::pct(2), 1, weir::errc::always_violated, "a request is answered once"},
    {"window_edge", alone<window_edge::buggy>, alone<window_edge::fixed>, weir::sim::pct(2), 1,
     weir::errc::always_violated, "one call in a window"},
    {"expired_token", alone<expired_token::buggy>, alone<expired_token::fixed>, weir::sim::dfs(1),
     1, weir::errc::always_violated, "no expired token is sent"},

    {"lost_wake_up", alone<lost_wake_up::buggy>, alone<lost_wake_up::fixed>, weir::sim::pct(2), 1,
     weir::errc::deadlock, "deadlock"},
    {"wake_up_only_when_empty", alone<wake_up_only_when_empty::buggy>,
     alone<wake_up_only_when_empty::fixed>, weir::sim::pct(1), 1, weir::errc::deadlock, "deadlock"},
    {"late_registration", alone<late_registration::buggy>, alone<late_registration::fixed>,
     weir::sim::pct(1), 2, weir::errc::always_violated, "every part is there"},
    {"lock_order", alone<lock_order::buggy>, alone<lock_order::fixed>, weir::sim::pct(2), 1,
     weir::errc::deadlock, "deadlock"},
    {"mutual_futures", alone<mutual_futures::buggy>, alone<mutual_futures::fixed>,
     weir::sim::dfs(1), 1, weir::errc::deadlock, "deadlock"},
    {"polite_livelock", alone<polite_livelock::buggy>, alone<polite_livelock::fixed>,
     weir::sim::dfs(1), 1, weir::errc::livelock, "livelock"},

    {"missed_cancellation", alone<missed_cancellation::buggy>, alone<missed_cancellation::fixed>,
     weir::sim::pct(2), 1, weir::errc::always_violated, "a cancelled order is not shipped"},
    {"unwanted_commit", alone<unwanted_commit::buggy>, alone<unwanted_commit::fixed>,
     weir::sim::pct(2), 1, weir::errc::always_violated, "a cancelled payment is not charged"},
    {"leaked_connection", alone<leaked_connection::buggy>, alone<leaked_connection::fixed>,
     weir::sim::pct(2), 1, weir::errc::always_violated, "every connection is back"},
    {"leaked_child", alone<leaked_child::buggy>, alone<leaked_child::fixed>, weir::sim::pct(2), 1,
     weir::errc::deadlock, "deadlock"},
    {"flush_after_close", alone<flush_after_close::buggy>, alone<flush_after_close::fixed>,
     weir::sim::dfs(1), 1, weir::errc::always_violated, "nothing is written to a closed file"},

    {"overtaken_write", overtaken_write::buggy, overtaken_write::fixed, weir::sim::pct(1), 1,
     weir::errc::always_violated, "a read sees the write before it"},
    {"early_request", early_request::buggy, early_request::fixed, weir::sim::pct(1), 1,
     weir::errc::always_violated, "a request finds its version"},
};

}  // namespace corpus
