// SPDX-License-Identifier: MIT
#include "core/served_loop.hpp"

#include <weir/detail/core/dump_line.hpp>
#include <weir/scope.hpp>

#include "core/cancel_tree.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"
#include "core/session.hpp"
#include "core/signals.hpp"

namespace weir::detail {

namespace {

/// The wait of a loop that only serves others; ends by cancellation.
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

void require_no_loop_to_block(const std::string& what) {
  if (const loop* here = loop::here())
    raise(errc::would_deadlock,
          what + " made on loop '" + here->shared_door()->name() +
              "' without a scope: its destructor would block the loop; give it the scope that "
              "joins it");
}

/// Asks the loop to end.
struct served_loop::end_message final : message {
  explicit end_message(bool without_grace) noexcept : force(without_grace) {}
  void deliver(loop& here) noexcept override {
    here.cancel_everything("the loop was asked to end", force);
    delete this;
  }
  void refuse() noexcept override { delete this; }
  bool force;
};

/// Notifies the owner that the loop has ended.
struct served_loop::ended_message final : message {
  explicit ended_message(std::shared_ptr<served_loop> s) noexcept : from(std::move(s)) {}
  void deliver(loop&) noexcept override {
    from->notify_owner();
    delete this;
  }
  void refuse() noexcept override {
    from->due_.forget();
    delete this;
  }
  std::shared_ptr<served_loop> from;
};

served_loop::served_loop(std::string name, std::unique_ptr<served_root> root)
    : name_(std::move(name)), root_(std::move(root)) {}

// The thread has posted its last message and is about to end. If it could not start its loop, it
// may hold the last reference itself.
served_loop::~served_loop() {
  due_.forget();  // the owner may be gone
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    join();
  }
}

std::shared_ptr<served_loop> served_loop::start(std::string name,
                                                std::unique_ptr<served_root> root) {
  auto made = std::make_shared<served_loop>(std::move(name), std::move(root));
  if (loop* here = loop::here()) {
    made->owner_ = here->shared_door();
    here->env().start(made);
    made->due_.expect(*here);
  } else {
    made->start_thread();
  }
  return made;
}

void served_loop::start_thread() {
  {
    const no_signals during;
    thread_ = std::thread([self = shared_from_this(), mask = during.before()] {
      keep_program_mask(mask);
      self->run_thread();
    });
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
    if (door_ != nullptr) fatal("loop '" + name_ + "': an exception left its turn");
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
  if (owner_ != nullptr) owner_->post(*new ended_message(shared_from_this()));
}

void served_loop::notify_owner() noexcept {
  join();
  joined_ = true;
  due_.settle();
  if (served_wait* w = std::exchange(waiter_, nullptr)) w->complete();
}

void served_loop::end(bool force) noexcept {
  const asked wanted = force ? asked::forced : asked::to_end;
  door_ref door;
  {
    const std::lock_guard lock(mutex_);
    if (asked_ >= wanted) return;
    asked_ = wanted;
    door = door_;
  }
  door->post(*new end_message(force));
}

void served_loop::join() {
  if (thread_.joinable()) thread_.join();
}

// ------------------------------------------------------------------ the owner's wait

bool served_wait::try_now() const noexcept { return loop_->joined_; }

void served_wait::arm() noexcept {
  loop_->waiter_ = this;
  pass_on_force();  // an earlier part of the cleanup may have used up the grace
}

void served_wait::pass_on_force() noexcept {
  if (cancel_tree::forced(*waiting_strand()->top)) loop_->end(true);
}

cancel_result served_wait::withdraw() noexcept {
  if (!in_dead_world()) pass_on_force();
  return cancel_result::no;
}

served_wait::~served_wait() {
  if (loop_ != nullptr && loop_->waiter_ == this) loop_->waiter_ = nullptr;
}

void served_wait::describe(dump_line& line) const {
  line.add("the end of loop").add_name(loop_->name());
}

}  // namespace weir::detail
