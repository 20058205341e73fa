// SPDX-License-Identifier: MIT
// The life of a run in memory: begin, drive, end, eviction.
#include "durable/run.hpp"

#include "core/dump_tree.hpp"
#include "core/error.hpp"
#include "core/error_notes.hpp"
#include "core/user_place.hpp"
#include "durable/engine_core.hpp"

namespace weir::detail {

namespace {

constexpr int strands_per_turn = 64;

}  // namespace

durable::run_state state_after(command_answer::kind how) noexcept {
  if (how == command_answer::kind::value) return durable::run_state::completed;
  if (how == command_answer::kind::cancelled) return durable::run_state::cancelled;
  return durable::run_state::failed;
}

live_run::live_run(durable_run& run, loop& host) : env(run), inner(env, host, run) {}

loop& durable_run::host() noexcept { return engine_.host(); }

durable_run::~durable_run() {
  if (live != nullptr) evict("the engine has ended");
}

void durable_run::begin(const handler_base& code, std::string input, run_history history) {
  live = std::make_unique<live_run>(*this, host());
  live->first_life = !std::exchange(begun, true);
  set_blocked_on({});
  if (!history.patches.empty()) live->need_tables().patches = std::move(history.patches);
  live->clock = std::max({started, begins, history.begins});
  live->replay = std::make_unique<live_run::replay_state>(std::move(history));
  if (takes_turns()) live->work = std::make_unique<turn_work>();
  live->handler_fiber.id = root_fiber;
  const in_loop in_run(live->inner);
  scope_options how;
  how.name = id.view();
  how.failure = failure::isolate;  // its error is the run's
  live->root_scope.emplace(scope_setup(how, std::source_location::current()), region_kind::scope);
  auto* root = scope::make(code.invoke(input));
  live->root = core_ref::adopt(live->root_scope->adopt(
      root, {.name = "handler"}, std::source_location::current(), scope::launch::hidden));
  live->inner.set_root(*live->root_scope, *root);
}

void durable_run::handler_begins(std::source_location function) noexcept {
  if (!is_library_file(function.file_name())) live->handler = function;
}

durable_run::progress durable_run::drive() {
  if (live->unrecorded != nullptr) return progress::unrecorded;
  const in_loop in_run(live->inner);
  if (!std::exchange(live->driven, true)) cancel_before_begin();
  for (int turns = 0;; ++turns) {
    if (turns == strands_per_turn) return progress::more;
    for (int i = 0; !live->inner.drain(1);) {
      if (stopped()) return how_it_stopped();
      if (hurry() && !deliver_next()) return progress::blocked;
      if (++i == strands_per_turn) return progress::more;
    }
    if (stopped()) return how_it_stopped();
    if (static_cast<fiber*>(live->root.get())->ended) {
      if (live->replaying && !go_live()) return how_it_stopped();
      return progress::ended;
    }
    if (live->replaying && live->replay->past.completions.empty()) {
      if (!go_live()) return how_it_stopped();
      if (engine_.only_looks()) return progress::parked;
    } else if (live->replaying || (live->inbox != nullptr && !live->inbox->empty())) {
      if (!deliver_next()) return progress::blocked;
    } else if (waits_for_journal()) {
      return progress::parked;
    } else {
      fail_deadlocked();
    }
  }
}

bool durable_run::waits_for_journal() const noexcept {
  return !live->timers.empty() || !live->issued.empty() || live->journaled_waits > 0;
}

// The deadlock is recorded, so that the cleanup that follows is the same in every replay. If the
// cleanup deadlocks as well, it is cut short.
void durable_run::fail_deadlocked() {
  if (live->is_deadlocked()) {
    if (std::exchange(live->forced, true))
      return block("deadlocked, and a wait refuses to end: " + where_it_is(root_fiber));
    return live->inner.cancel_everything("deadlock", true);
  }
  completion what{record_type::deadlock, 0, engine_.wall_now(), {}, {}};
  what.answer.how = command_answer::kind::error;
  what.answer.code = errc::deadlock;
  what.answer.text =
      "deadlock: every fiber of the run waits for another one, and nothing journaled is pending\n" +
      tree_of(live->inner);
  engine_.answer_run(*this, std::move(what));
}

void durable_run::block(std::string why) {
  if (state == durable::run_state::blocked) return;
  state = durable::run_state::blocked;
  set_message(why);
}

void durable_run::stop_unrecorded(std::string why) {
  if (!stopped()) live->unrecorded = std::make_unique<std::string>(std::move(why));
}

// ------------------------------------------------------------------ end

void durable_run::evict(const char* why) {
  live->evicting = true;
  {
    strand* const before = std::exchange(current, nullptr);
    live->inner.evict(make_reason({cancel_kind::evicted, why}, 0, live->inner.now()));
    current = before;
  }
  for (auto& [key, t] : live->timers) engine_.stop_timer(t);
  discard();
}

void durable_run::discard() {
  engine_.unpark(*this);
  {
    const in_loop in_run(live->inner);
    live->root = core_ref();
    live->root_scope.reset();
  }
  live.reset();
}

bool durable_run::has_succeeded() const noexcept {
  const auto& root = static_cast<fiber_of<std::string>&>(static_cast<fiber&>(*live->root.get()));
  return !live->is_deadlocked() && root.out.is_value();
}

command_answer durable_run::take_result() {
  auto& root = static_cast<fiber_of<std::string>&>(static_cast<fiber&>(*live->root.get()));
  command_answer how;
  std::exception_ptr& error = need_end().error;
  if (live->is_deadlocked()) {
    how.how = command_answer::kind::error;
    how.code = errc::deadlock;
    how.text = std::move(live->tables->deadlock);
    error = make_error(errc::deadlock, how.text);
  } else if (root.out.is_value()) {
    how.how = command_answer::kind::value;
    how.text = root.out.take();
  } else if (root.out.is_error()) {
    how.how = command_answer::kind::error;
    error = root.out.error();
    how.text = message_of(error);
    how.facts = facts_of(error);
  } else {
    how.how = command_answer::kind::cancelled;
    how.text = root.out.is_cancelled() ? root.out.reason().message : std::string();
  }
  discard();
  return how;
}

}  // namespace weir::detail
