// SPDX-License-Identifier: MIT
// What is the same in every replay: the clock of a run, the numbers of its fibers, its random
// numbers, and the ids and keys that follow from them.
#include "durable/run.hpp"

#include <cstdio>

#include "core/cancel_tree.hpp"
#include "durable/engine_core.hpp"

namespace weir::detail {

namespace {

/// Spreads a number over all bits (the last steps of splitmix64).
std::uint64_t mix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint32_t fiber_number(std::uint32_t spawner, std::uint32_t child) noexcept {
  return static_cast<std::uint32_t>(
      mix((static_cast<std::uint64_t>(spawner) << 32 | child) ^ 0x5bd1e995U));
}

}  // namespace

time_point run_environment::now() { return time_point(run_.clock().time_since_epoch()); }

wall_time run_environment::wall_now() { return run_.clock(); }

std::uint64_t run_environment::random() { return run_.next_number(); }

bool run_environment::simulated() const noexcept { return run_.host().env().simulated(); }

void run_environment::frame_failed(const std::exception_ptr& error) noexcept {
  run_.host().env().frame_failed(error);
}

// The numbers of one fiber do not depend on what other fibers draw.
std::uint64_t durable_run::next_number() {
  live_run::fiber_record& f = running_fiber();
  const std::uint64_t stream = mix(seed + 0x9e3779b97f4a7c15U * (f.id + std::uint64_t{1}));
  return mix(stream + 0x9e3779b97f4a7c15U * ++f.numbers);
}

// ------------------------------------------------------------------ fibers

live_run::fiber_record& durable_run::running_fiber() {
  if (current == nullptr) return live->outside;
  const fiber* const f = cancel_tree::fiber_of(*current->top);
  if (f != nullptr && live->inner.is_root(*f)) return live->handler_fiber;
  if (live->children == nullptr) return live->outside;
  const auto found = live->children->running.find(f);
  return found == live->children->running.end() ? live->outside : found->second;
}

// A fiber's number follows from its path: its spawner, and its position among the spawner's
// children. So spawning more fibers does not change the numbers of others, except in a hash
// collision.
void durable_run::fiber_begins(fiber& f) {
  live_run::fiber_record& spawner = running_fiber();
  std::uint32_t number = fiber_number(spawner.id, ++spawner.children);
  if (live->inner.root_scope() == nullptr) return;  // the handler's, which has its own number
  if (live->children == nullptr) {
    live->children = std::make_unique<live_run::child_table>();
    live->children->ids = {root_fiber, fiber_number(0, 1)};
  }
  while (number == 0 || !live->children->ids.insert(number).second) ++number;
  live->children->running[&f].id = number;
}

void durable_run::fiber_ended(fiber& f) noexcept {
  if (live == nullptr || live->children == nullptr) return;
  live->children->running.erase(&f);  // its number is not reused
}

// ------------------------------------------------------------------ ids and keys

std::string durable_run::child_id(std::uint64_t key) const {
  char text[24];
  std::snprintf(text, sizeof text, ".%x.%u", fiber_of_key(key), index_of_key(key));
  return (life == 1 ? id.str() : id.str() + "~" + std::to_string(life)) + text;
}

// Two runs with one id, in different journals or one after the other, have different seeds. The key
// contains a hash of the seed: the seed itself would reveal the run's random numbers.
std::string durable_run::step_key(std::uint64_t key) const {
  char text[24];
  std::snprintf(text, sizeof text, ".%016llx",
                static_cast<unsigned long long>(mix(seed ^ 0x737465702d6b6579U)));
  return child_id(key) + text;
}

}  // namespace weir::detail
