// SPDX-License-Identifier: MIT
// A task is one run, so it cannot be run every minute.
// EXPECT: give a callable that makes it
#include <weir/weir.hpp>

weir::task<> clean_up() { co_return; }

weir::task<> caller() { co_await weir::every(std::chrono::minutes(1), clean_up()); }
