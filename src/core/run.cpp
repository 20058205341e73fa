// SPDX-License-Identifier: MIT
#include <weir/run.hpp>

#include <optional>
#include <string>

#include "core/loop.hpp"
#include "core/region.hpp"
#include "core/signals.hpp"
#include "core/test_clock.hpp"

namespace weir::detail {

namespace {

/// Makes a loop the one of this thread while it lives.
struct current_loop_guard {
  explicit current_loop_guard(loop& l) noexcept {
    current_loop = &l;
    loop_serial = l.serial();
  }
  current_loop_guard(const current_loop_guard&) = delete;
  current_loop_guard& operator=(const current_loop_guard&) = delete;
  ~current_loop_guard() {
    current_loop = nullptr;
    loop_serial = 0;
  }
};

[[noreturn]] void raise_ending(const loop& l) {
  if (l.how_it_ended() == loop::ending::livelock)
    raise(errc::livelock, "livelock: the limit of steps was reached\n" + l.deadlock_tree());
  raise(errc::deadlock,
        "deadlock: nothing is ready and nothing can ever wake this loop\n" + l.deadlock_tree());
}

void run_in(loop& here, const run_options& options, fiber& root, std::source_location site) {
  const current_loop_guard guard(here);
  scope_options how;
  how.name = options.name.empty() ? weir::name("root") : options.name;
  how.grace = options.grace;
  how.failure = failure::isolate;  // the root's error is what run throws
  scope root_scope(scope_setup(how, site), region_kind::scope);
  const core_ref handed_over =
      core_ref::adopt(root_scope.adopt(&root, {.name = "main"}, site, scope::launch::hidden));
  here.run(root_scope, root);
}

}  // namespace

void run_root(const run_options& options, environment* env, fiber& root,
              std::source_location site) {
  if (current_loop != nullptr)
    raise(errc::nested_run, "run called inside running loop '" + current_loop->own_door().name() +
                                "'; await the operation instead");
  if (options.grace < duration::zero())
    raise(errc::invalid_argument, "run: grace is negative; give 0 or more");
  std::optional<real_environment> real;
  std::unique_ptr<environment> hand_driven;
  if (env == nullptr && options.clock != nullptr) {
    hand_driven = make_test_clock_environment(*options.clock);
    env = hand_driven.get();
  }
  if (env == nullptr) env = &real.emplace();
  loop here(*env, options.name.empty() ? "main" : std::string(options.name.view()));
  std::optional<signal_watch> signals;
  if (options.handle_signals) {
    signals.emplace(here.shared_door());
    here.set_handles_signals(true, options.grace);
  }
  run_in(here, options, root, site);
  if (here.how_it_ended() != loop::ending::normal) raise_ending(here);
}

}  // namespace weir::detail
