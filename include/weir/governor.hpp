// SPDX-License-Identifier: MIT
// All governors: limits on concurrency, rate and load, and the permits they give.
#pragma once

#include <weir/governor/adaptive.hpp>
#include <weir/governor/any.hpp>
#include <weir/governor/burst.hpp>
#include <weir/governor/compose.hpp>
#include <weir/governor/counting.hpp>
#include <weir/governor/governor.hpp>
#include <weir/governor/load.hpp>
#include <weir/governor/partitioned.hpp>
#include <weir/governor/rate.hpp>
#include <weir/governor/shared.hpp>
