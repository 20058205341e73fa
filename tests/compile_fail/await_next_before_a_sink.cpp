// SPDX-License-Identifier: MIT
// The same with a source that is awaited rightly, by its next value.
// EXPECT: what is left of | is no stream
#include <weir/weir.hpp>

weir::task<> consumer(weir::queue<int>& q) { co_await q.next() | weir::count(); }
