// SPDX-License-Identifier: MIT
#include <weir/detail/io/outside_wait.hpp>

#include <thread>

#include <weir/detail/core/composite.hpp>
#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/core/message.hpp>
#include <weir/detail/io/guest.hpp>

#include "core/error.hpp"
#include "core/loop.hpp"

namespace weir::detail {

/// Brings the end of an operation home from another thread.
struct outside_wait::answer final : message, frame_allocated {
  explicit answer(outside_wait& w) noexcept : to(w) {}
  void deliver(loop&) noexcept override {
    outside_wait& w = to;
    delete this;
    w.arrived();
  }
  void refuse() noexcept override { delete this; }  // a loop does not end before its waits
  outside_wait& to;
};

bool outside_wait::begin() noexcept {
  loop& here = *loop::here();
  home_ = &here;
  guest_ = guest_loop::here();
  problem_ = nullptr;
  state_ = state::started;
  if (here.own_door().simulated()) {
    problem_ = make_error(errc::invalid_argument,
                          "use_weir: an operation of Asio on simulated loop '" +
                              here.own_door().name() + "'; give the code its I/O from outside");
    state_ = state::finished;
    complete();
    return false;
  }
  if (guest_ == nullptr) due_.expect(here);
  return true;
}

loop_ref outside_wait::home() const noexcept { return {home_->index(), home_->serial()}; }

void outside_wait::arrived() noexcept {
  due_.settle();
  if (state_ == state::leaving && has_value()) emit_discarded("use_weir");
  state_ = state::finished;
  complete();
}

void outside_wait::finished() noexcept {
  if (home_->own_door().thread == std::this_thread::get_id()) {
    if (guest_ != nullptr) return guest_->complete(*this);
    if (loop::here() == home_) return arrived();
  }
  const door_ref there = home_->shared_door();
  there->post(*new answer(*this));
}

void outside_wait::abandoned() noexcept {
  problem_ = make_error(errc::abandoned,
                        "use_weir: the operation was destroyed before it had finished, probably "
                        "with its context; keep that until its operations have ended");
  finished();
}

void outside_wait::describe(dump_line& line) const { line.add("an Asio operation"); }

}  // namespace weir::detail
