// SPDX-License-Identifier: MIT
// All of streams: sources, stages, sinks and the classes stream and any_stream.
#pragma once

#include <weir/stream/any_stream.hpp>
#include <weir/stream/async.hpp>
#include <weir/stream/batch.hpp>
#include <weir/stream/blocking_range.hpp>
#include <weir/stream/emit.hpp>
#include <weir/stream/error.hpp>
#include <weir/stream/flat_map.hpp>
#include <weir/stream/from_callback.hpp>
#include <weir/stream/join.hpp>
#include <weir/stream/next_result.hpp>
#include <weir/stream/rate.hpp>
#include <weir/stream/share.hpp>
#include <weir/stream/sink.hpp>
#include <weir/stream/source.hpp>
#include <weir/stream/stream.hpp>
#include <weir/stream/transform.hpp>
