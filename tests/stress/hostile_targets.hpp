// SPDX-License-Identifier: MIT
// The containers of hostile items. Each has a list of things that may be done to it, of which
// destructors do those that wait for nothing.
#pragma once

#include <memory>

#include <weir/weir.hpp>

#include "stress/hostile_plan.hpp"
#include "stress/item.hpp"

namespace fuzz {

using weir::task;

class target {
 public:
  target() = default;
  target(const target&) = delete;
  target& operator=(const target&) = delete;
  virtual ~target() = default;

  /// One of the things that do not wait; any number will do. May throw what the container throws.
  virtual void act(int n) = 0;
  /// One of the things that may wait, for a millisecond at most.
  virtual task<> wait(int n) = 0;
  /// The container is not used any more: what keeps a scope or a loop alive ends.
  virtual task<> finish() { co_return; }
};

std::unique_ptr<target> make_flow_target(const hostile_plan& plan);
std::unique_ptr<target> make_agent_target(const hostile_plan& plan, weir::scope& s);

}  // namespace fuzz
