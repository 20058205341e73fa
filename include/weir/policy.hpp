// SPDX-License-Identifier: MIT
// All policies: how an operation is limited, repeated, hedged, replaced and supervised.
#pragma once

#include <weir/policy/absorb.hpp>
#include <weir/policy/backoff.hpp>
#include <weir/policy/bulkhead.hpp>
#include <weir/policy/chaos.hpp>
#include <weir/policy/circuit_breaker.hpp>
#include <weir/policy/deadline.hpp>
#include <weir/policy/fallback.hpp>
#include <weir/policy/hedge.hpp>
#include <weir/policy/retry.hpp>
#include <weir/policy/retry_budget.hpp>
#include <weir/policy/settle.hpp>
#include <weir/policy/supervise.hpp>
#include <weir/policy/trace.hpp>
