// SPDX-License-Identifier: MIT
// The programs of pool_promises.hpp, pool_model.hpp and remote_promises.hpp, by name:
// PROMISES(X) is X(program) for each of them.
#pragma once

#include "toolkit/pool_model.hpp"
#include "toolkit/pool_promises.hpp"
#include "toolkit/remote_promises.hpp"

#define PROMISES(X)                            \
  X(every_accepted_job_runs_once_and_in_order) \
  X(no_job_waits_while_a_worker_is_idle)       \
  X(sleeping_workers_wake)                     \
  X(who_waits_gets_the_first_free_place)       \
  X(a_pool_does_what_its_model_does)           \
  X(cancelled_callers_leave_nothing)           \
  X(a_cancelled_run_is_taken_back_or_joined)   \
  X(a_cancelled_run_does_not_wait_for_its_job) \
  X(close_drains_and_refuses)                  \
  X(cancel_drops_and_counts)                   \
  X(cancel_at_any_moment)                      \
  X(crashed_workers_keep_nobody_waiting)       \
  X(a_crashed_owner_keeps_nobody_waiting)      \
  X(nested_pools_end_in_order)                 \
  X(values_end_at_home)                        \
  X(deadlines_and_locals_travel)               \
  X(travellers_come_home)                      \
  X(callers_of_ended_loops_are_told)           \
  X(blocking_calls_are_made_once_or_not_at_all)
