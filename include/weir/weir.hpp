// SPDX-License-Identifier: MIT
// Everything of weir from core to agents. Simulation is in <weir/sim.hpp>.
#pragma once

// Included first, so that g++ shows a short path in the diagnostics of these headers.
#include <weir/scope.hpp>
#include <weir/task.hpp>

#include <weir/detail/core/op.hpp>
#include <weir/detail/core/pipe.hpp>

#include <weir/agent.hpp>
#include <weir/agent_pool.hpp>
#include <weir/blocking.hpp>
#include <weir/broadcast.hpp>
#include <weir/cancel_reason.hpp>
#include <weir/cancel_token.hpp>
#include <weir/channel.hpp>
#include <weir/combinators.hpp>
#include <weir/context.hpp>
#include <weir/dump.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/event.hpp>
#include <weir/every.hpp>
#include <weir/future.hpp>
#include <weir/governor.hpp>
#include <weir/group.hpp>
#include <weir/guard.hpp>
#include <weir/latch.hpp>
#include <weir/local.hpp>
#include <weir/loop_events.hpp>
#include <weir/loop_ref.hpp>
#include <weir/loop_thread.hpp>
#include <weir/mutex.hpp>
#include <weir/name.hpp>
#include <weir/on.hpp>
#include <weir/oneshot.hpp>
#include <weir/operation.hpp>
#include <weir/outcome.hpp>
#include <weir/overflow.hpp>
#include <weir/parallel_map.hpp>
#include <weir/policy.hpp>
#include <weir/pool.hpp>
#include <weir/queue.hpp>
#include <weir/registry.hpp>
#include <weir/run.hpp>
#include <weir/start.hpp>
#include <weir/stats.hpp>
#include <weir/stream.hpp>
#include <weir/supervisor.hpp>
#include <weir/suspend.hpp>
#include <weir/time.hpp>
#include <weir/topic.hpp>
