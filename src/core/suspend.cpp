// SPDX-License-Identifier: MIT
#include <weir/suspend.hpp>

#include <string>

#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/run_rules.hpp>

#include "core/error.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir::detail {

/// Carries an answer to the loop that waits for it.
struct suspend_message final : message {
  explicit suspend_message(suspend_core& c) noexcept : core(&c) {}
  void deliver(loop&) noexcept override {
    core->arrived();
    core->drop_ref();
  }
  void refuse() noexcept override { core->drop_ref(); }
  suspend_core* core;
};

struct suspend_core::shared {
  explicit shared(suspend_core& c) noexcept : answer(c) {}
  suspend_message answer;
  door_ref home = loop::here()->shared_door();
};

suspend_core::suspend_core() : shared_(std::make_unique<shared>(*this)) {}
suspend_core::~suspend_core() = default;

bool suspend_core::claim() {
  require_no_run("resumer");
  if (in_dead_world()) return false;
  const door& home = *shared_->home;
  if (home.simulated() && home.thread != std::this_thread::get_id() &&
      phase_.load(std::memory_order_acquire) == phase::waiting)
    raise_outside_simulation("a suspend of simulated loop '" + home.name() + "' answered");
  phase expected = phase::waiting;
  if (phase_.compare_exchange_strong(expected, phase::answered, std::memory_order_acq_rel))
    return true;
  shared_->home->late.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void suspend_core::hand_over() noexcept {
  loop* here = loop::here();
  if (here != nullptr && here->serial() == shared_->home->serial()) return arrived();
  add_ref();
  shared_->home->post(shared_->answer);
}

void suspend_core::arrived() noexcept {
  if (suspend_wait_base* wait = std::exchange(wait_, nullptr)) wait->answered();
}

void suspend_core::drop_resumer() noexcept {
  if (resumers_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const bool crashed = in_dead_world();
  if (crashed && shared_->home->serial() == loop::here()->serial()) return;
  phase expected = phase::waiting;
  if (!phase_.compare_exchange_strong(expected, phase::answered, std::memory_order_acq_rel)) return;
  error = crashed ? make_error(errc::loop_gone, "suspend: the loop that was to answer has crashed")
                  : make_error(errc::abandoned,
                               "suspend: the last resumer was destroyed without an answer");
  hand_over();
}

void suspend_core::drop_ref() noexcept {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

bool suspend_core::end_waiting() noexcept {
  phase expected = phase::waiting;
  return phase_.compare_exchange_strong(expected, phase::ended, std::memory_order_acq_rel);
}

bool suspend_core::answered() const noexcept {
  return phase_.load(std::memory_order_acquire) == phase::answered;
}

// ------------------------------------------------------------------ the wait

suspend_wait_base::~suspend_wait_base() { let_go(); }

void suspend_wait_base::let_go() noexcept {
  loop::here()->suspends().remove(*this);
  if (core_ == nullptr) return;
  core_->end_waiting();
  core_->detach();
  core_->drop_ref();
  core_ = nullptr;
}

void suspend_wait_base::arm() noexcept {
  let_go();
  later_ = false;
  core_ = make_core();
  core_->attach(*this);
  loop::here()->suspends().add(*this);
  // Kept alive while the starting function runs: it may answer, and a throw may destroy its
  // resumer.
  suspend_core* const core = core_;
  core->add_ref();
  core->add_resumer();
  try {
    call_start();
  } catch (...) {
    if (core->claim()) {
      core->error = std::current_exception();
      core->hand_over();
    }
  }
  core->drop_resumer();
  core->drop_ref();
}

void suspend_wait_base::answered() noexcept {
  loop::here()->suspends().remove(*this);
  if (later_ && has_value()) loop::here()->emit("value_discarded", "suspend");
  complete();
}

cancel_result suspend_wait_base::withdraw() noexcept {
  if (core_->answered()) return cancel_result::no;  // the answer is on its way: deliver it
  // Kept alive: a canceller that drops the last resumer and returns `done` has not answered.
  suspend_core* const core = core_;
  core->add_ref();
  core->add_resumer();
  cancel_result answer = cancel_result::done;
  try {
    if (!in_dead_world()) answer = call_canceller();
  } catch (...) {
    fatal("the canceller of a suspend threw; cancellers must not throw");
  }
  const bool ended = answer == cancel_result::done && core->end_waiting();
  core->drop_resumer();
  core->drop_ref();
  if (answer == cancel_result::done && !ended) return cancel_result::no;
  if (answer == cancel_result::done) {
    loop::here()->suspends().remove(*this);
    core_->detach();
  }
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
    if (w->core_->end_waiting()) {
      w->core_->error =
          make_error(errc::abandoned, "suspend: nothing is left that could answer it");
      w->core_->detach();
      w->answered();
    }
  }
  return any;
}

void suspend_wait_base::describe(dump_line& line) const { line.add("suspend"); }

}  // namespace weir::detail
