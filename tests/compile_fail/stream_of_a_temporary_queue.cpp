// SPDX-License-Identifier: MIT
// The stream of a queue refers to it: a temporary queue would be gone first.
// EXPECT: stream() of a temporary weir::queue: the stream refers to the queue
#include <weir/weir.hpp>

auto numbers() { return weir::queue<int>(3).stream(); }
