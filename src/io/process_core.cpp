// SPDX-License-Identifier: MIT
#include "io/process_core.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <weir/combinators.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/io/socket.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/settle.hpp>
#include <weir/time.hpp>

#include "core/loop.hpp"

namespace weir::detail {

/// Has the process as long as its guard exists.
class process_core::keeper {
 public:
  explicit keeper(std::shared_ptr<process_core> core) noexcept : core_(std::move(core)) {}
  keeper(keeper&&) noexcept = default;
  keeper& operator=(keeper&&) = delete;
  ~keeper() {
    if (core_ != nullptr) core_->abandon();
  }
  process_core& core() const noexcept { return *core_; }

 private:
  std::shared_ptr<process_core> core_;
};

process_core::process_core(started_process started, duration grace,
                           std::optional<std::string> input) noexcept
    : process_(std::move(started)), grace_(grace), input_(std::move(input)) {}

std::shared_ptr<process_core> process_core::start(scope& s, const io::command& what,
                                                  const io::process_options& options,
                                                  bool open_input) {
  require_processes(what, options);
  s.require_open("process::spawn");
  const bool with_input = open_input || what.given_input().has_value();
  started_process started = start_process(what, with_input);
  child_process* const child = started.child.get();
  std::shared_ptr<process_core> core;
  try {
    core = std::make_shared<process_core>(std::move(started), options.grace, what.given_input());
  } catch (...) {
    child->end_now();
    throw;
  }
  keeper k(core);
  const std::string name = core->child().text();
  fiber* const guarding =
      s.adopt(scope::make(guard(std::move(k))), {.name = name}, std::source_location::current(),
              scope::launch::background, core.get());
  const core_ref not_kept = core_ref::adopt(guarding);
  return core;
}

void process_core::close_input() noexcept {
  if (process_.in != nullptr) process_.in->close();
}

void process_core::abandon() noexcept {
  process_.child->end_now();
  ended_.set();
}

task<> process_core::guard(keeper k) {
  process_core& core = k.core();
  auto body = [&core](scope& s) { return core.watch_over(s); };
  co_await with_scope({.name = "guard", .grace = duration::max()}, body);
}

task<> process_core::watch_over(scope& s) {
  auto input = [this] { return feed(); };
  if (input_.has_value()) s.background(input, {.name = "input"});
  co_await race(exited(), asked_.wait());
  if (!process_.child->reaped()) co_await end(s);
  ended_.set();
}

// A process need not read its input, and has none once it is asked to end.
task<> process_core::feed() {
  try {
    co_await pending<write_all_wait>(
        {process_.in.get(), std::as_bytes(std::span<const char>(*input_))});
  } catch (const error& e) {
    if (e.code() != std::errc::broken_pipe && e.code() != errc::closed) throw;
  }
  close_input();
}

task<> process_core::end(scope& s) {
  close_input();
  auto drop_out = [this] { return discard(*process_.out); };
  auto drop_err = [this] { return discard(*process_.err); };
  s.background(drop_out, {.name = "output"});
  s.background(drop_err, {.name = "errors"});
  const time_point until = saturating_add(now(), grace_);
  child_process& child = *process_.child;
  child.signal(SIGTERM);
  child.signal(SIGCONT);
  co_await settle(with_timeout(grace_, exited()));
  if (child.reaped()) co_await await_group(until);
  child.signal(SIGKILL);
  co_await exited();
}

// Nothing tells when the last member of a group has ended, so it is asked: rarely, and only while
// some are left after their leader.
task<> process_core::await_group(time_point until) {
  duration pause = std::chrono::milliseconds(1);
  constexpr duration longest = std::chrono::milliseconds(50);
  while (process_.child->signal(0) && now() < until) {
    co_await sleep(std::min(pause, until - now()));
    pause = std::min(pause * 2, longest);
  }
}

// Until the end, or as long as no other fiber reads it.
task<> process_core::discard(stream_core& from) {
  std::array<std::byte, 4096> piece;
  try {
    while (co_await pending<read_some_wait>({&from, piece}) > 0) {
    }
  } catch (const error& e) {
    if (e.code() != errc::busy && e.code() != errc::closed) throw;
  }
}

void require_processes(const io::command& what, const io::process_options& options) {
  require_no_run("process", what.program());
  const std::string text = "process '" + what.program() + "'";
  if (require_fiber("process").env().simulated())
    raise(errc::invalid_argument,
          text + ": a simulation has no processes; put what runs them behind an interface");
  if (options.grace < duration::zero() || options.max_output < 0)
    raise(errc::invalid_argument, text + ": grace and max_output are 0 or more");
}

}  // namespace weir::detail
