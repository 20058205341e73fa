// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace weir::detail {

class loop;
struct fiber;

/// The tree of one loop, as weir::dump prints it. On the loop's own thread only.
std::string dump_of(loop& here);
/// The same without its first line and without inner loops.
std::string tree_of(loop& here);
/// All fibers of a loop that have not ended, parents before children, in the order of the tree.
std::vector<fiber*> fibers_of(loop& here);
/// One fiber with what it waits on and its chain of awaiting tasks.
void describe_fiber(std::string& out, const fiber& f, std::size_t indent);

}  // namespace weir::detail
