// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include <weir/scope.hpp>

namespace weir::detail {

class loop;
struct fiber;

/// The tree of one loop, as weir::dump prints it. On the loop's own thread only.
std::string dump_of(loop& here);
/// What weir::dump prints: all loops of the process. Any thread.
std::string dump_all();
/// dump_of() without its first line and without inner loops.
std::string tree_of(loop& here);
/// All live fibers of a loop, parents before children, in tree order.
std::vector<fiber*> fibers_of(loop& here);
/// Whether `inner` is the number of `s` or of a region inside it.
bool has_region(const scope& s, scope_id inner);
/// One fiber with what it waits on and its chain of awaiting tasks.
void describe_fiber(std::string& out, const fiber& f, std::size_t indent);

}  // namespace weir::detail
