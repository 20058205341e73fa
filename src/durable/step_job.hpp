// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <weir/durable/step.hpp>
#include <weir/future.hpp>

#include "durable/run.hpp"

namespace weir::detail {

/// A step under way: a fiber on the host's loop, outside of the run. The wait in the run's frame,
/// and with it the body, the options and the name, lives until the journal has recorded how the
/// step ended.
///
/// A plain function is called on the first turn of the fiber, and if its result can be recorded at
/// once, that is all: there is no coroutine. Everything else is work for one: tasks, step_once,
/// budgets, further attempts, results that may have to wait for space, and what is left to do after
/// a function that failed or registered a defer.
class step_job final : public fiber_of<void>, public step_source, public frame_allocated {
 public:
  step_job(engine_core& engine, durable_run& run, command_wait& w,
           const run_history::step_past& past);
  /// The LSN that must be durable before it starts.
  std::uint64_t depends() const noexcept { return depends_; }
  void start(scope& in);
  /// Asks it to end.
  void cancel();
  /// Its coroutine was destroyed: it was cancelled, or the journal has failed.
  void cut_short();
  std::string key() override { return run_.step_key(command_); }
  std::string_view object_key() const noexcept override { return run_.object_key(); }

  // As a fiber.
  bool begin() override;
  void drop_operation() noexcept override { out.destroy_frame(); }
  void dispose() noexcept override { delete this; }

 private:
  /// How a function ended that was called before there was a coroutine.
  struct early_end {
    std::string value;
    std::exception_ptr error;  // null: it has returned `value`
    entry* entries = nullptr;  // the defers that it has registered
  };

  ~step_job();
  static task<> work(step_job& job);
  task<std::string> attempt();
  static task<std::string> repeat(step_job& job);
  /// Calls the function and records its result; false: there is more to do.
  bool end_at_once(function_body& body);
  /// Whether the value was recorded. `no_room`: try again when there is room. `failed`: `result` is
  /// the error.
  enum class recorded { done, no_room, failed };
  recorded record_value(outcome<std::string>& result);
  std::uint64_t record_attempt(const std::string& message);
  void finish(command_answer answer);
  void finish_cancelled();
  void lost();
  void leave();
  const command_setup& setup() const noexcept { return wait_.setup(); }

  engine_core& engine_;
  durable_run& run_;
  command_wait& wait_;
  std::uint64_t command_;
  std::uint64_t depends_;
  std::optional<std::string> value_;  // of the body, which is not called again
  std::unique_ptr<early_end> early_;  // until the coroutine has taken it over
  std::int64_t failed_;
  binding* locals_;  // of the waiting fiber
  bool once_;
  bool started_ = false;
  bool begun_ = false;
  bool asked_ = false;
};

/// The job that a wait or a queue of the engine refers to.
inline step_job& job_in(const core_ref& r) noexcept {
  return static_cast<step_job&>(static_cast<fiber&>(*r.get()));
}

}  // namespace weir::detail
