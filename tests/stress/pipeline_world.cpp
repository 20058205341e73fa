// SPDX-License-Identifier: MIT
#include "stress/pipeline_world.hpp"

namespace fuzz {

void world::beside(task<> work) { beside_.push_back(home->spawn(std::move(work))); }

void world::stop() {
  stopped_ = true;
  for (weir::child<void>& c : beside_) c.cancel("the consumer is done");
  for (weir::queue<item>& q : queues) q.close();
  for (weir::broadcast<item>& b : broadcasts) b.close();
}

// Destructors must not throw, and the world may be half gone: whatever it cannot do, it leaves.
void world::spring() {
  const int n = springs_++;
  const auto some = [&](auto& of) -> auto* {
    return of.empty() ? nullptr : &of[static_cast<std::size_t>(n) % of.size()];
  };
  auto* q = some(queues);
  auto* b = some(broadcasts);
  auto* st = some(states);
  try {
    switch (plan.hostile.trap_kind) {
      case 0:
        if (q != nullptr) (void)q->try_next();
        break;
      case 1:
        if (q != nullptr) q->close();
        break;
      case 2:
        if (q != nullptr) q->discard();
        break;
      case 3:
        if (q != nullptr) (void)q->try_push(item(extra_item + 7));
        break;
      case 4:
        if (b != nullptr) (void)b->subscribe({.overflow = weir::overflow::drop_oldest});
        if (b != nullptr) (void)b->try_emit(item(extra_item + 7));
        break;
      case 5:
        if (home != nullptr) beside(perform(*this, {awaits::sleep, 3}));
        break;
      case 6:
        if (st != nullptr) st->set(item(extra_item + n));
        if (b != nullptr) b->close();
        break;
      default:
        if (agent) (void)agent->cast(&helper::note, n);
        if (auto* g = some(counting)) (void)g->try_acquire();
        break;
    }
  } catch (const std::exception&) {
  }
}

void world::check_end() {
  const auto expect_equal = [&](const char* what, long a, long b) {
    if (a != b) problem(std::string(what) + ": " + std::to_string(a) + " and " + std::to_string(b));
  };
  expect_equal("generators entered and left", generators.entered, generators.left);
  expect_equal("generators that completed, and scope_success", generators.completed,
               generators.succeeded);
  expect_equal("generators that did not complete, and scope_failure",
               generators.entered - generators.completed, generators.failed);
  expect_equal("generators left without a reason", generators.without_reason, 0);
  expect_equal("items destroyed twice", counted_items.destroyed_twice(), 0);
  for (weir::counting_governor& g : counting) {
    expect_equal("permits out", g.active(), 0);
    expect_equal("waiting for permits", g.waiting(), 0);
  }
  for (weir::shared_governor& g : shared_permits) expect_equal("shared permits out", g.active(), 0);
}

items build(world& w, const node& n) {
  if (is_source(n.what)) return build_source(w, n);
  if (n.what == op::deferred) {
    const node& inner = n.inputs.front();
    return weir::defer_stream([&w, &inner] { return build(w, inner); });
  }
  if (n.inputs.size() > 1) return build_joined(w, n);
  items in = build(w, n.inputs.front());
  switch (n.what) {
    case op::shared:
    case op::passed_on:
    case op::passed_impatiently:
    case op::catch_with:
    case op::finally_plain:
    case op::finally_task:
      return build_around(w, n, std::move(in));
    case op::chunks:
    case op::timed_chunks:
    case op::ready_chunks:
    case op::sliding:
    case op::group_by:
      return build_batch(w, n, std::move(in));
    default:
      break;
  }
  if (n.what <= op::skip_last) return build_transform(w, n, std::move(in));
  if (n.what <= op::limit) return build_concurrent(w, n, std::move(in));
  return build_rate(w, n, std::move(in));
}

}  // namespace fuzz
