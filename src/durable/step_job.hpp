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
/// and with it the body, lives until the journal has recorded how the step ended.
class step_job final : public std::enable_shared_from_this<step_job>, public step_source {
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

 private:
  static task<> work(std::shared_ptr<step_job> self);
  task<std::string> attempt();
  /// Whether the value was recorded. `no_room`: try again when there is room. `failed`: `out` is
  /// the error.
  enum class recorded { done, no_room, failed };
  recorded record_value(outcome<std::string>& out);
  std::uint64_t record_attempt(const std::string& message);
  void finish();
  void finish_cancelled();
  void lost();
  void leave();

  engine_core& engine_;
  durable_run& run_;
  std::uint64_t command_;
  std::uint64_t depends_;
  step_body& body_;
  retry_options retry_;
  bool once_;
  std::optional<std::string> value_;  // of the body, which is not called again
  bool begun_ = false;
  bool asked_ = false;
  std::source_location site_;
  std::string name_;
  std::int64_t failed_;
  binding* locals_;  // of the waiting fiber
  command_answer answer_;
  core_ref fiber_;
};

}  // namespace weir::detail
