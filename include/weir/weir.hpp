// SPDX-License-Identifier: MIT
// Everything of weir from core to agents. Simulation is in <weir/sim.hpp>.
#pragma once

#include <weir/cancel_reason.hpp>
#include <weir/cancel_token.hpp>
#include <weir/combinators.hpp>
#include <weir/context.hpp>
#include <weir/counting_governor.hpp>
#include <weir/deadline.hpp>
#include <weir/dump.hpp>
#include <weir/duration.hpp>
#include <weir/error.hpp>
#include <weir/event.hpp>
#include <weir/future.hpp>
#include <weir/governor.hpp>
#include <weir/guard.hpp>
#include <weir/local.hpp>
#include <weir/loop_ref.hpp>
#include <weir/name.hpp>
#include <weir/outcome.hpp>
#include <weir/parallel_map.hpp>
#include <weir/run.hpp>
#include <weir/scope.hpp>
#include <weir/settle.hpp>
#include <weir/start.hpp>
#include <weir/suspend.hpp>
#include <weir/task.hpp>
#include <weir/time.hpp>
