// SPDX-License-Identifier: MIT
#include <weir/suspend.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "core/error.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

bool suspend_core::claim() {
  require_no_run("resumer");
  if (in_dead_world()) return false;
  if (home()->simulated() && home()->thread != std::this_thread::get_id() && is_waiting())
    raise_outside_simulation("a suspend of simulated loop '" + home()->name() + "' answered");
  if (reply::claim()) return true;
  home()->late.fetch_add(1, std::memory_order_relaxed);
  return false;
}

// The last resumer is gone. On a loop that crashes nothing is answered: the wait is destroyed, too.
void suspend_core::end_answering() noexcept {
  const bool crashed = in_dead_world();
  if (crashed && is_home()) {
    decline();
  } else if (reply::claim()) {
    error = crashed
                ? make_error(errc::loop_gone, "suspend: the loop that was to answer has crashed")
                : make_error(errc::abandoned,
                             "suspend: the last resumer was destroyed without an answer");
    answer();
  }
  if (is_abandoned()) dispose();
  release();
}

// ------------------------------------------------------------------ the wait

suspend_wait_base::~suspend_wait_base() { let_go(); }

void suspend_wait_base::let_go() noexcept {
  loop::here()->suspends().remove(*this);
  if (suspend_core* const core = std::exchange(core_, nullptr)) core->leave();
}

void suspend_wait_base::arm() noexcept {
  let_go();
  later_ = false;
  core_ = make_core();
  core_->ask(*this, false);  // the list of suspends says that it is due
  loop::here()->suspends().add(*this);
  suspend_core* const core = core_;
  try {
    call_start();
  } catch (...) {
    if (core->claim()) {
      core->error = std::current_exception();
      core->answer();
    }
  }
  core->drop_resumer();
}

void suspend_wait_base::answered() noexcept {
  loop::here()->suspends().remove(*this);
  if (later_ && has_value()) loop::here()->emit("value_discarded", "suspend");
  complete();
}

cancel_result suspend_wait_base::withdraw() noexcept {
  if (core_->in_flight()) return cancel_result::no;  // deliver it
  // A resumer of its own: a canceller that drops the last one and returns `done` has not answered.
  suspend_core* const core = core_;
  core->add_resumer();
  cancel_result answer = cancel_result::done;
  try {
    if (!in_dead_world()) answer = call_canceller();
  } catch (...) {
    fatal("the canceller of a suspend threw; cancellers must not throw");
  }
  const bool answered = answer == cancel_result::done && !core->abandon();
  if (answer == cancel_result::done && !answered) {
    loop::here()->suspends().remove(*this);
    core_ = nullptr;  // it belongs to the resumers now
  }
  core->drop_resumer();
  if (answered) return cancel_result::no;
  later_ = answer == cancel_result::later;
  if (later_ && at_on_loop_ == nullptr && has_value())  // confirmed inside the call
    loop::here()->emit("value_discarded", "suspend");
  return answer;
}

void suspend_list::add(suspend_wait_base& w) noexcept {
  w.next_on_loop_ = first_;
  if (first_ != nullptr) first_->at_on_loop_ = &w.next_on_loop_;
  first_ = &w;
  w.at_on_loop_ = &first_;
}

void suspend_list::remove(suspend_wait_base& w) noexcept {
  if (w.at_on_loop_ == nullptr) return;
  *w.at_on_loop_ = w.next_on_loop_;
  if (w.next_on_loop_ != nullptr) w.next_on_loop_->at_on_loop_ = w.at_on_loop_;
  w.at_on_loop_ = nullptr;
}

bool suspend_list::abandon_all() noexcept {
  const bool any = first_ != nullptr;
  while (suspend_wait_base* w = first_) {
    remove(*w);
    suspend_core& core = *w->core_;
    if (!core.reply::claim()) continue;
    core.error = make_error(errc::abandoned, "suspend: nothing is left that could answer it");
    core.answer();
  }
  return any;
}

void suspend_wait_base::describe(dump_line& line) const { line.add("suspend"); }

}  // namespace weir::detail
