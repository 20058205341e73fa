// SPDX-License-Identifier: MIT
// Durable execution: runs that survive the death of their process.
#pragma once

#include <weir/durable/awakeable.hpp>
#include <weir/durable/call.hpp>
#include <weir/durable/engine.hpp>
#include <weir/durable/json.hpp>
#include <weir/durable/object.hpp>
#include <weir/durable/patch.hpp>
#include <weir/durable/serde.hpp>
#include <weir/durable/step.hpp>
#include <weir/durable/stored.hpp>
#include <weir/error_metadata.hpp>
