// SPDX-License-Identifier: MIT
#include <weir/detail/io/guest.hpp>

#include <optional>
#include <string>

#include <weir/detail/core/composite.hpp>
#include <weir/detail/core/dump_line.hpp>
#include <weir/detail/io/outside_wait.hpp>
#include <weir/future.hpp>
#include <weir/scope.hpp>
#include <weir/task.hpp>

#include "core/cancel_tree.hpp"
#include "core/environment.hpp"
#include "core/fatal.hpp"
#include "core/session.hpp"
#include "io/reactor.hpp"

namespace weir::detail {

namespace {

constinit thread_local guest_loop* current_guest = nullptr;

// The loop needs a root, which has ended when the first operation begins: operations are further
// children of the root scope.
task<> no_root() { co_return; }

run_options named_asio() {
  run_options options;
  options.name = "asio";
  return options;
}

}  // namespace

struct guest_loop::state {
  state(fiber& root, std::source_location site) : home(machine, named_asio(), root, site) {}

  loop& itself() noexcept { return home.here(); }
  bool has_children() noexcept {
    return cancel_tree::first_child(*itself().root_scope()) != nullptr;
  }

  real_environment machine;
  session home;
  reactor* io = nullptr;
  std::size_t pending = 0;     // operations
  end_watch* ended = nullptr;  // whose ends are to be told
  end_watch** ended_end = &ended;
  std::optional<time_point> wake;  // the host was asked for it
  bool in_turn = false;
  bool watched = false;
};

/// Waits for the end of an operation, without a strand.
class guest_loop::end_watch final : public composite, public frame_allocated {
 public:
  end_watch(guest_loop& in, fiber& f, guest_op* told) : op(told), in_(in), end_(core_ref(&f)) {
    link_.owner = this;
    end_.belongs_to(link_);
    end_.arm();
    f.note_observed();
  }
  ~end_watch() = default;

  void arm_completed(arm_link&) noexcept override {
    state& s = *in_.state_;
    *s.ended_end = this;
    s.ended_end = &next;
  }
  bool poll() override { return false; }
  void link() override {}
  cancel_result withdraw() noexcept override { return cancel_result::no; }
  void describe(dump_line& line) const override { line.add("the end of an operation"); }

  guest_op* const op;
  end_watch* next = nullptr;

 private:
  guest_loop& in_;
  settled_wait end_;
  arm_link link_;
};

/// RAII: a visit, see guest.hpp.
class guest_loop::visit {
 public:
  explicit visit(guest_loop& g) noexcept
      : guest_(on_its_thread(g)),
        outermost_(!g.state_->in_turn),
        home_(g.state_->itself()),
        before_(std::exchange(current_guest, &g)) {
    g.state_->in_turn = true;
  }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;
  ~visit() {
    if (outermost_) {
      guest_.state_->itself().turn();
      guest_.settle();
      guest_.state_->in_turn = false;
    }
    current_guest = before_;
  }

 private:
  // Before this thread enters the loop: its tree belongs to the other thread, and is not printed.
  static guest_loop& on_its_thread(guest_loop& g) noexcept {
    if (!g.is_here())
      fatal(
          "a second thread runs an io_context in which weir's fibers run; they share one thread "
          "with its handlers: run it on that thread only");
    return g;
  }

  guest_loop& guest_;
  bool outermost_;
  in_loop home_;
  guest_loop* before_;
};

guest_loop::guest_loop(guest_host& host) : host_(host) {
  fiber* const root = scope::make(no_root());
  const core_ref keep(root);
  state_ = std::make_unique<state>(*root, std::source_location::current());
  const in_loop home(state_->itself());
  try {
    state_->io = &reactor::here();
  } catch (...) {
    state_->itself().turn();  // the session ends with its root
    throw;
  }
  state_->itself().turn();
}

guest_loop::~guest_loop() = default;

guest_loop* guest_loop::here() noexcept {
  return current_guest != nullptr && &current_guest->state_->itself() == loop::here()
             ? current_guest
             : nullptr;
}

bool guest_loop::is_here() const noexcept {
  return state_->itself().own_door().thread == std::this_thread::get_id();
}

bool guest_loop::over() const noexcept { return state_->pending == 0 && !state_->has_children(); }
bool guest_loop::ending() const noexcept { return state_->pending == 0 && state_->has_children(); }

void guest_loop::turn() noexcept { const visit now(*this); }

void guest_loop::readable() noexcept {
  const visit now(*this);
  state_->watched = false;
  state_->itself().own_door().rang();
  state_->itself().look_at_io();
}

void guest_loop::time_passed() noexcept {
  const visit now(*this);
  state_->wake.reset();
}

void guest_loop::start(fiber& f, guest_op* op, std::source_location site) noexcept {
  const visit now(*this);
  scope& root = *state_->itself().root_scope();
  const core_ref keep = core_ref::adopt(
      root.adopt(&f, {.name = op == nullptr ? "main" : "spawn_on"}, site, scope::launch::ordinary));
  ++state_->pending;
  new end_watch(*this, f, op);
}

void guest_loop::cancel(fiber& f, const cancel_reason& why) noexcept {
  const visit now(*this);
  cancel_fiber(f, why);
}

void guest_loop::complete(outside_wait& w) noexcept {
  const visit now(*this);
  w.arrived();
}

void guest_loop::emit(const char* name, const std::exception_ptr& error) noexcept {
  const visit now(*this);
  state_->itself().emit(name, "run_on", 0, 0, error);
}

void guest_loop::make_current(void (*fn)(void*), void* argument) {
  const in_loop home(state_->itself());
  struct restore {
    guest_loop* before;
    ~restore() { current_guest = before; }
  } const after{std::exchange(current_guest, this)};
  fn(argument);
}

void guest_loop::host_has_run() noexcept {
  if (state_->itself().needs_turn()) host_.turn_soon();
}

// Ends are told after the turn, because what is told may be the end of the loop.
void guest_loop::tell_ended() noexcept {
  while (end_watch* const first = state_->ended) {
    state_->ended = first->next;
    if (state_->ended == nullptr) state_->ended_end = &state_->ended;
    --state_->pending;
    if (first->op != nullptr) first->op->ended();
    delete first;
  }
}

void guest_loop::settle() noexcept {
  loop& l = state_->itself();
  tell_ended();
  if (over()) return host_.loop_is_over();
  // The root scope itself stays open: another operation may begin.
  if (ending())
    for (fiber* f = cancel_tree::first_child(*l.root_scope()); f != nullptr; f = f->following)
      cancel_fiber(*f, {cancel_kind::shutdown, "the loop has ended"});
  // A timer that is cancelled may leave a wake-up that is too early: a visit for nothing.
  const time_point next = l.next_look();
  if (next != time_point::max() && (!state_->wake || next < *state_->wake)) {
    state_->wake = next;
    host_.wake_at(next);
  }
  if (!std::exchange(state_->watched, true)) host_.watch(state_->io->descriptor());
  if (l.needs_turn() || !l.own_door().begin_watch()) host_.turn_soon();
}

void guest_loop::host_destroyed(guest_loop* guest, std::size_t unstarted) noexcept {
  std::string text = "io_context destroyed while operations of weir are pending in it";
  if (unstarted > 0)
    text.append(" (").append(std::to_string(unstarted)).append(" of them not started)");
  text.append("; run it until they have ended, after cancelling them if need be");
  if (guest == nullptr) fatal(text);
  const in_loop home(guest->state_->itself());
  fatal(text);
}

}  // namespace weir::detail
