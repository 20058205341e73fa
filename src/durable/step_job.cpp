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

/// A larger result may become a file of its own, which the disk may refuse.
constexpr std::size_t recorded_at_once_max = 4096;

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
      wait_(w),
      command_(w.command),
      depends_(run.depends),
      failed_(past.failed),
      locals_(cancel_tree::locals(cancel_tree::scope_of(*w.waiting_strand()->top))),
      once_(w.setup().kind == command_kind::step_once) {
  home = engine.host().serial();
  if (!w.setup().name.empty()) name = w.setup().name.c_str();
}

step_job::~step_job() {
  if (early_ == nullptr) return;
  while (entry* const e = early_->entries) {
    early_->entries = e->below;
    e->discard();
  }
}

void step_job::start(scope& in) {
  if (asked_) return;
  started_ = true;
  (void)core_ref::adopt(in.adopt(this, {}, setup().site, scope::launch::ordinary));
}

void step_job::cancel() {
  const core_ref keep(this);
  asked_ = true;
  if (!started_) return finish_cancelled();
  cancel_fiber(*this,
               cancel_reason(cancel_kind::user, "the durable run does not wait for it any more"));
  if (!begun_) finish_cancelled();  // it never begins, so it cannot report its end
}

bool step_job::begin() {
  begun_ = true;
  function_body* const body = setup().body->as_function();
  const bool simple = !once_ && failed_ == 0 && setup().retry->budget == nullptr;
  try {
    if (body != nullptr && simple && engine_.running() && end_at_once(*body)) {
      out.emplace();
      return false;
    }
    out.own_frame(work(*this).release());
  } catch (...) {  // memory ran out
    cut_short();
    out.set_error(std::current_exception());
    return false;
  }
  frame& root = frame_of(out.frame());
  root.out = &out;
  leaf = &root;
  return true;
}

bool step_job::end_at_once(function_body& body) {
  early_end end;
  {
    step_region region(this);
    cancel_tree::enter(*this, region);
    region.inherit(locals_);
    try {
      end.value = body.call();
    } catch (...) {
      end.error = std::current_exception();
    }
    end.entries = std::exchange(cancel_tree::entries(region), nullptr);
  }
  const bool simple = end.error == nullptr && end.entries == nullptr;
  if (!simple || end.value.size() > recorded_at_once_max) {
    early_ = std::make_unique<early_end>(std::move(end));
    return false;
  }
  value_ = std::move(end.value);
  outcome<std::string> refused;
  return record_value(refused) == recorded::done;
}

task<std::string> step_job::attempt() {
  auto once = [this](context& c) {
    auto& region = static_cast<step_region&>(static_cast<scope&>(c));
    region.inherit(locals_);
    if (early_ == nullptr) return setup().body->attempt();
    cancel_tree::entries(region) = std::exchange(early_->entries, nullptr);
    return repeat(*this);
  };
  return run_region<std::string, step_region, decltype(once)>(this, once);
}

// In a coroutine, so that an error notes where it has passed.
task<std::string> step_job::repeat(step_job& job) {
  const std::unique_ptr<early_end> end = std::move(job.early_);
  if (end->error) std::rethrow_exception(end->error);
  co_return std::move(end->value);
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

task<> step_job::work(step_job& job) {
  step_end end(job);
  step_attempts attempts(*job.setup().retry, job.failed_);
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
  command_answer answer;
  answer.how = command_answer::kind::error;
  answer.code = out.is_error() ? code_of(out.error()) : errc::terminal;
  answer.text = out.is_error() ? message_of(out.error()) : "the step was cancelled";
  if (out.is_error()) answer.facts = facts_of(out.error());
  end.reached();
  job.finish(std::move(answer));
}

// A value that the disk refuses is a failed attempt; the next attempt only writes the value.
step_job::recorded step_job::record_value(outcome<std::string>& result) {
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
    result.reset();
    result.set_error(make_error(code, "the result of step '" + setup().name + "' of run '" +
                                          run_.id.str() + "': " + e.what()));
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

void step_job::finish(command_answer answer) {
  if (run_.state == durable::run_state::blocked) return lost();
  leave();
  run_.step_ended(command_, std::move(answer));
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
  command_answer answer;
  answer.how = command_answer::kind::cancelled;
  answer.text = "the step was cancelled";
  finish(std::move(answer));
}

void step_job::lost() {
  leave();
  engine_.step_lost(run_);
}

// The wait drops its reference here; the scope of the fiber or the caller of cancel() still holds
// one. From now on the run may destroy the wait, which has the name.
void step_job::leave() {
  name = nullptr;
  wait_.job = core_ref();
  --run_.live->jobs;
}

}  // namespace weir::detail
