// SPDX-License-Identifier: MIT
#include "durable/step_job.hpp"

#include <weir/context.hpp>
#include <weir/detail/core/run_rules.hpp>
#include <weir/local.hpp>
#include <weir/time.hpp>

#include "core/cancel_tree.hpp"
#include "core/error.hpp"
#include "durable/engine_core.hpp"

namespace weir::detail {

namespace {

/// Marks the code in it as the body of a step.
struct step_region final : local_region_base {
  using setup = step_source*;
  explicit step_region(setup of) : local_region_base(&step_mark, of, "step") {}
  /// The locals of the fiber that waits for the step, whose frames outlive it.
  void inherit(binding* locals) noexcept { bound.outer = locals; }
};

}  // namespace

step_job::step_job(engine_core& engine, durable_run& run, command_wait& w,
                   const run_history::step_past& past)
    : engine_(engine),
      run_(run),
      command_(w.command),
      depends_(run.depends),
      body_(*w.setup().body),
      retry_(*w.setup().retry),
      once_(w.setup().kind == command_kind::step_once),
      site_(w.setup().site),
      name_(w.setup().name),
      failed_(past.failed),
      locals_(cancel_tree::locals(cancel_tree::scope_of(*w.waiting_strand()->top))) {}

void step_job::start(scope& in) {
  if (asked_) return;
  fiber* f = scope::make(work(shared_from_this()));
  fiber_ =
      core_ref::adopt(in.adopt(f, {.name = weir::name(name_)}, site_, scope::launch::ordinary));
}

void step_job::cancel() {
  const std::shared_ptr<step_job> keep = shared_from_this();
  asked_ = true;
  if (fiber_.get() == nullptr) return finish_cancelled();
  cancel_fiber(static_cast<fiber&>(*fiber_.get()),
               cancel_reason(cancel_kind::user, "the durable run does not wait for it any more"));
  if (!begun_) finish_cancelled();  // it never begins, so it cannot report its end
}

task<std::string> step_job::attempt() {
  auto once = [this](context& c) {
    static_cast<step_region&>(static_cast<scope&>(c)).inherit(locals_);
    return body_.attempt();
  };
  return run_region<std::string, step_region, decltype(once)>(this, once);
}

namespace {

/// Reports the end of a step whose coroutine is destroyed before it could do so itself.
class step_end {
 public:
  explicit step_end(step_job& job) noexcept : job_(&job) {}
  step_end(const step_end&) = delete;
  step_end& operator=(const step_end&) = delete;
  ~step_end() {
    if (job_ != nullptr && !in_dead_world()) job_->cut_short();
  }
  void reached() noexcept { job_ = nullptr; }

 private:
  step_job* job_;
};

}  // namespace

task<> step_job::work(std::shared_ptr<step_job> self) {
  step_job& job = *self;
  job.begun_ = true;
  step_end end(job);
  step_attempts attempts(job.retry_, job.failed_);
  outcome<std::string> out;
  auto call = [&] { return job.attempt(); };
  for (;;) {
    if (job.once_ && !job.value_) {
      const std::uint64_t lsn =
          job.engine_.append(job.run_, record_type::intent, 0, job.command_, {}).lsn;
      co_await job.engine_.durable(lsn);
    }
    job.engine_.require_running();
    attempts.begin();
    if (!job.value_) co_await detail::into(out, call);
    if (out.is_value()) job.value_ = out.take();
    // If there is no space for the result, it waits: the step is not repeated.
    for (bool waited = false; job.value_; waited = true) {
      const recorded how = job.record_value(out);
      if (how == recorded::done) {
        end.reached();
        co_return;
      }
      if (how == recorded::failed) break;
      if (!waited) job.engine_.host().emit("journal_full", job.run_.id);
      co_await sleep(room_interval);
    }
    const duration pause = attempts.after_failure(out);
    if (pause < duration::zero()) break;
    const std::uint64_t lsn = job.record_attempt(message_of(out.error()));
    if (pause > duration::zero()) co_await sleep(pause);
    co_await job.engine_.durable(lsn);  // it counts, whatever happens to the next one
    out.reset();
  }
  job.answer_.how = command_answer::kind::error;
  job.answer_.code = out.is_error() ? code_of(out.error()) : errc::terminal;
  job.answer_.text = out.is_error() ? message_of(out.error()) : "the step was cancelled";
  if (out.is_error()) job.answer_.facts = facts_of(out.error());
  end.reached();
  job.finish();
}

// A value that the disk refuses is a failed attempt; the next attempt only writes the value.
step_job::recorded step_job::record_value(outcome<std::string>& out) {
  if (run_.state == durable::run_state::blocked) {
    lost();
    return recorded::done;
  }
  completion what{record_type::answer, command_, engine_.wall_now(), {}, {}};
  what.answer.how = command_answer::kind::value;
  what.answer.text = std::move(*value_);
  try {
    engine_.deliver_to(run_, std::move(what));
  } catch (const payload_error& e) {
    value_ = std::move(what.answer.text);
    const errc code = errc_of(e);
    if (code == errc::journal_full) return recorded::no_room;
    out.reset();
    out.set_error(make_error(
        code, "the result of step '" + name_ + "' of run '" + run_.id.str() + "': " + e.what()));
    return recorded::failed;
  }
  leave();
  return recorded::done;
}

// The attempt counts; a message that cannot be written is omitted.
std::uint64_t step_job::record_attempt(const std::string& message) {
  payload_writer payload;
  payload.secret(message);
  payload_writer without;
  without.secret({});
  try {
    return engine_.append(run_, record_type::attempt, 0, command_, payload.view()).lsn;
  } catch (const payload_error&) {
    return engine_.append(run_, record_type::attempt, 0, command_, without.view()).lsn;
  }
}

void step_job::finish() {
  if (run_.state == durable::run_state::blocked) return lost();
  leave();
  run_.step_ended(command_, std::move(answer_));
}

// A step cut short by the end of the engine is not recorded. After the next open it runs again; a
// step_once that was under way ends with errc::outcome_unknown.
void step_job::cut_short() {
  if (asked_) {
    finish_cancelled();
  } else {
    lost();
  }
}

void step_job::finish_cancelled() {
  if (run_.state == durable::run_state::blocked) return lost();
  leave();
  answer_.how = command_answer::kind::cancelled;
  answer_.text = "the step was cancelled";
  run_.step_ended(command_, std::move(answer_));
}

void step_job::lost() {
  leave();
  engine_.step_lost(run_);
}

// The run may drop its reference here; the job's fiber or the caller of cancel() still holds one.
void step_job::leave() { run_.live->jobs.erase(command_); }

}  // namespace weir::detail
