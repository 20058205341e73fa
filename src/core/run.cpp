// SPDX-License-Identifier: MIT
#include <weir/run.hpp>

#include <memory>
#include <optional>
#include <string>

#include "core/cancel_tree.hpp"
#include "core/loop.hpp"
#include "core/session.hpp"
#include "core/signals.hpp"
#include "core/test_clock.hpp"

namespace weir::detail {

session::session(environment& env, const run_options& options, fiber& root,
                 std::source_location site)
    : loop_(env, options.name.empty() ? "main" : std::string(options.name.view())) {
  const active_loop active(loop_);
  scope_options how;
  how.name = options.name.empty() ? weir::name("root") : options.name;
  how.grace = options.grace;
  how.failure = failure::isolate;  // run() throws the root's error
  root_scope_.emplace(scope_setup(how, site), region_kind::scope);
  root_ = core_ref::adopt(root_scope_->adopt(&root, {.name = "main"}, site, scope::launch::hidden));
  loop_.set_root(*root_scope_, root);
}

session::~session() {
  const active_loop active(loop_);
  root_ = core_ref();
  root_scope_.reset();
}

void require_no_loop() {
  if (current_loop != nullptr)
    raise(errc::nested_run, "run called inside running loop '" + current_loop->own_door().name() +
                                "'; await the operation instead");
}

void run_root(const run_options& options, fiber& root, std::source_location site) {
  require_no_loop();
  if (options.grace < duration::zero())
    raise(errc::invalid_argument, "run: grace is negative; give 0 or more");
  std::optional<signal_watch> signals;  // it may refuse, which must come before there is a fiber
  if (options.handle_signals) signals.emplace();
  std::optional<real_environment> real;
  std::unique_ptr<environment> hand_driven;
  environment* env = nullptr;
  if (options.clock != nullptr) {
    hand_driven = make_test_clock_environment(*options.clock);
    env = hand_driven.get();
  } else {
    env = &real.emplace();
  }
  session s(*env, options, root, site);
  if (options.handle_signals) {
    signals->watch(s.here().shared_door());
    s.here().set_handles_signals(true, options.grace);
  }
  {
    const active_loop active(s.here());
    s.here().run();
  }
  if (!s.here().deadlock().empty()) raise(errc::deadlock, s.here().deadlock());
}

}  // namespace weir::detail
