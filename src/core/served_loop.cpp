// SPDX-License-Identifier: MIT
#include "core/served_loop.hpp"


#include <weir/detail/dump_line.hpp>
#include <weir/scope.hpp>

#include "core/loop.hpp"
#include "core/region.hpp"
#include "core/session.hpp"
#include "core/signals.hpp"

namespace weir::detail {

namespace {

/// What a loop that only serves others waits for: to be cancelled.
class idle_wait : public simple_wait<idle_wait> {
 public:
  struct args {};
  using result = void;
  explicit idle_wait(args&&) noexcept {}
  bool try_now() const noexcept { return false; }
  void arm() const noexcept {}
  cancel_result withdraw() noexcept override { return cancel_result::done; }
  void describe(dump_line& line) const override { line.add("work from other loops"); }
  void take() const noexcept {}
};

struct idle_root final : served_root {
  task<> run() override { return serve_idly(); }
};

}  // namespace

task<> serve_idly() { co_await pending<idle_wait>({}); }
std::unique_ptr<served_root> make_idle_root() { return std::make_unique<idle_root>(); }

/// Tells the loop to end.
struct served_loop::end_message final : message {
  void deliver(loop& here) noexcept override {
    here.cancel_everything("the loop was told to end", false);
    delete this;
  }
  void refuse() noexcept override { delete this; }
};

/// Tells the owner that the loop has ended.
struct served_loop::ended_message final : message {
  explicit ended_message(std::shared_ptr<served_loop> s) noexcept : from(std::move(s)) {}
  void deliver(loop&) noexcept override {
    if (served_wait* w = std::exchange(from->waiter_, nullptr)) w->ended();
    delete this;
  }
  void refuse() noexcept override { delete this; }
  std::shared_ptr<served_loop> from;
};

served_loop::served_loop(std::string name, std::unique_ptr<served_root> root)
    : name_(std::move(name)), root_(std::move(root)) {}

// The thread has posted its last message; what is left of it takes no time. If it could not start
// its loop, the last reference may be its own.
served_loop::~served_loop() {
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    join();
  }
}

std::shared_ptr<served_loop> served_loop::start(std::string name,
                                                std::unique_ptr<served_root> root) {
  auto made = std::make_shared<served_loop>(std::move(name), std::move(root));
  loop* here = loop::here();
  if (here != nullptr) {
    here->env().start(made);
  } else {
    made->start_thread();
  }
  return made;
}

void served_loop::start_thread() {
  {
    const no_signals during;
    thread_ = std::thread([self = shared_from_this()] { self->run_thread(); });
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return door_ != nullptr || failed_ != nullptr; });
  if (failed_ != nullptr) std::rethrow_exception(failed_);
}

void served_loop::run_thread() noexcept {
  try {
    real_environment machine;
    fiber* root = make_root();
    const core_ref keep(root);
    run_options options;
    options.name = name_;
    session s(machine, options, *root, std::source_location::current());
    s.here().serve();
    has_started(s.here());
    const active_loop active(s.here());
    s.here().run();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = std::current_exception();
    changed_.notify_all();
    return;
  }
  has_ended_now();
}

fiber* served_loop::make_root() { return scope::make(root_->run()); }

void served_loop::has_started(loop& here) noexcept {
  ref_ = {here.index(), here.serial()};
  const std::lock_guard lock(mutex_);
  door_ = here.shared_door();
  changed_.notify_all();
}

void served_loop::has_ended_now() noexcept {
  root_.reset();
  door_ref owner;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    owner = std::move(owner_);
    changed_.notify_all();
  }
  if (owner != nullptr) owner->post(*new ended_message(shared_from_this()));
}

void served_loop::end() noexcept {
  door_ref door;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(asked_, true) || ended_) return;
    door = door_;
  }
  door->post(*new end_message);
}

bool served_loop::has_ended() const noexcept {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void served_loop::join() {
  if (thread_.joinable()) thread_.join();
}

// ------------------------------------------------------------------ the owner's wait

bool served_wait::try_now() const noexcept { return loop_->has_ended(); }

void served_wait::arm() {
  loop& here = *loop::here();
  {
    const std::lock_guard lock(loop_->mutex_);
    if (!loop_->ended_) {
      loop_->owner_ = here.shared_door();
      loop_->waiter_ = this;
      here.expect_answer(1);
      return;
    }
  }
  complete();
}

cancel_result served_wait::withdraw() noexcept {
  if (!in_dead_world()) loop_->end();
  return cancel_result::later;
}

void served_wait::ended() noexcept {
  loop_->join();
  loop::here()->expect_answer(-1);
  complete();
}

served_wait::~served_wait() {
  if (loop_ == nullptr || loop_->waiter_ != this) return;
  loop_->waiter_ = nullptr;
  loop::here()->expect_answer(-1);
}

void served_wait::describe(dump_line& line) const {
  line.add("the end of loop").add_name(loop_->name());
}

}  // namespace weir::detail
