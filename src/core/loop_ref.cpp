// SPDX-License-Identifier: MIT
#include <weir/loop_ref.hpp>

#include <thread>

#include <weir/detail/core/run_rules.hpp>

#include "core/error.hpp"
#include "core/loop.hpp"

namespace weir {

namespace detail {

namespace {

struct post_message final : message {
  explicit post_message(std::unique_ptr<posted_call> c) noexcept : call(std::move(c)) {}
  void deliver(loop& here) noexcept override {
    try {
      call->call();
    } catch (...) {
      here.emit("post_failed", here.own_door().name(), 0, 0, std::current_exception());
      here.env().post_failed(std::current_exception());
    }
    delete this;
  }
  void refuse() noexcept override { delete this; }
  std::unique_ptr<posted_call> call;
};

}  // namespace

// A door that has closed is as good as gone, and is not kept.
door_ref loop::find_door(std::uint32_t index, std::uint32_t serial) {
  if (known_doors_ == nullptr) known_doors_ = std::make_unique<std::array<door_ref, doors_kept>>();
  door_ref& known = (*known_doors_)[index % doors_kept];
  if (known == nullptr || known->serial() != serial) known = door_table::find(index, serial);
  if (known != nullptr && known->messages.is_closed()) known = nullptr;
  return known;
}

bool post_to(const loop_ref& to, std::unique_ptr<posted_call> call) {
  require_no_run("post");
  if (in_dead_world()) return false;
  loop* const here = loop::here();
  const door_ref home = here == nullptr ? door_table::find(to.index(), to.serial())
                                        : here->find_door(to.index(), to.serial());
  if (home != nullptr && home->simulated() && home->thread != std::this_thread::get_id())
    raise_outside_simulation("post to simulated loop '" + home->name() + "'");
  return home != nullptr && home->post(*new post_message(std::move(call)));
}

}  // namespace detail

bool loop_ref::alive() const {
  detail::require_no_run("loop_ref");
  return detail::door_table::find(index_, serial_) != nullptr;
}

keep_alive_guard loop_ref::keep_alive() const {
  detail::require_no_run("keep_alive");
  return keep_alive_guard(detail::door_table::find(index_, serial_));
}

keep_alive_guard::keep_alive_guard(std::shared_ptr<detail::door> door) noexcept
    : door_(std::move(door)) {
  if (door_ != nullptr) door_->kept_alive.fetch_add(1, std::memory_order_acq_rel);
}

void keep_alive_guard::let_go() noexcept {
  if (door_ == nullptr) return;
  // This guard may be the only reason why the loop sleeps: wake it to check again.
  if (door_->kept_alive.fetch_sub(1, std::memory_order_acq_rel) == 1) door_->wake();
  door_ = nullptr;
}

keep_alive_guard& keep_alive_guard::operator=(keep_alive_guard&& other) noexcept {
  if (this != &other) {
    let_go();
    door_ = std::move(other.door_);
  }
  return *this;
}

keep_alive_guard::~keep_alive_guard() { let_go(); }

loop_ref this_loop() {
  detail::loop* here = detail::loop::here();
  if (here == nullptr) detail::raise_no_current_fiber("this_loop");
  detail::require_no_run("this_loop");
  return {here->index(), here->serial()};
}

}  // namespace weir
