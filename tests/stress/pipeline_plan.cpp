// SPDX-License-Identifier: MIT
// From a seed to a program over streams.
#include "stress/pipeline_plan.hpp"

#include <algorithm>
#include <initializer_list>

namespace fuzz {

namespace {

constexpr int items_max = 6;
constexpr int depth_max = 5;

class planner {
 public:
  explicit planner(std::uint64_t seed) : dice_(seed) {}

  pipeline_plan make(std::uint64_t seed) {
    pipeline_plan plan;
    plan.seed = seed;
    plan.in = any_order(dice_);
    plan.stream = any_stream_of(dice_.between(0, depth_max));
    plan.use = any_usage(plan.stream);
    if (dice_.percent(15)) {
      plan.hostile.trap_every = dice_.between(1, 6);
      plan.hostile.trap_kind = dice_.below(8);
    }
    if (dice_.percent(8)) plan.hostile.fuse = dice_.between(1, 60);
    if (!expect(plan).ends && plan.use.cancel_after < 0)
      plan.use.cancel_after = dice_.between(5, 150);
    return plan;
  }

 private:
  template <class E>
  E one_of(E first, E last) {
    return static_cast<E>(dice_.between(static_cast<int>(first), static_cast<int>(last)));
  }
  permits any_permits() {
    return static_cast<permits>(dice_.below(static_cast<int>(permits::count)));
  }
  int base() { return 1000 * ++sources_; }

  node any_stream_of(int depth) {
    if (depth == 0) return any_source();
    if (dice_.percent(25)) return joined(depth);
    node n;
    n.what = one_of(op::deferred, op::last_wrapper);
    n.a = dice_.between(0, 4);
    n.b = dice_.between(1, 4);
    n.c = dice_.between(0, 7);
    n.by = any_permits();
    n.inputs.push_back(any_stream_of(depth - 1));
    return n;
  }

  node joined(int depth) {
    node n;
    n.what = one_of(op::merge, op::with_latest_from);
    n.a = dice_.below(2);
    const bool can_be_three = n.what == op::merge || n.what == op::concat;
    const int inputs = can_be_three ? dice_.between(2, 3) : 2;
    for (int i = 0; i < inputs; ++i) n.inputs.push_back(any_stream_of(dice_.below(depth)));
    return n;
  }

  node any_source() {
    node n;
    // Generators are what most can go wrong with.
    n.what = dice_.percent(55) ? op::generator : one_of(op::generator, op::last_source);
    n.a = base();
    n.b = dice_.below(items_max);
    n.c = dice_.between(0, 3);
    if (n.what == op::generator) {
      n.steps = any_steps();
      n.b = dice_.percent(15) ? dice_.below(items_max) : -1;
    }
    return n;
  }

  std::vector<step> any_steps() {
    std::vector<step> all(static_cast<std::size_t>(dice_.below(items_max)));
    const bool gentle = dice_.percent(40);
    const auto last = gentle ? awaits::last_withdrawable : awaits::suspended;
    // Some await the same thing again and again, as real generators do.
    const step same = any_step(last);
    const bool monotonous = dice_.percent(40);
    for (step& s : all) s = monotonous ? same : any_step(last);
    return all;
  }
  step any_step(awaits last) { return {one_of(awaits::nothing, last), dice_.between(0, 9)}; }

  bool any_node(const node& n, bool (*holds)(op)) {
    return holds(n.what) || std::any_of(n.inputs.begin(), n.inputs.end(),
                                        [&](const node& i) { return any_node(i, holds); });
  }

  usage any_usage(const node& stream) {
    usage u;
    const bool own_children = any_node(stream, pulls_by_itself);
    u.what = dice_.percent(60)
                 ? consumer::pulls
                 : static_cast<consumer>(dice_.below(static_cast<int>(consumer::count)));
    u.governed = dice_.percent(50);
    u.by = any_permits();
    u.width = dice_.between(1, 3);
    u.patience = dice_.between(1, 12);
    u.end = static_cast<ending>(dice_.below(3));
    if (u.end != ending::at_end) u.items = dice_.below(6);
    u.outside = dice_.percent(30);
    // Concurrent stages belong to the scope of the first pull, and end with it.
    u.hops = !own_children && dice_.percent(15);
    if (dice_.percent(25)) u.cancel_after = dice_.between(0, 60);
    for (int i = dice_.between(1, 4); i > 0; --i) u.ways.push_back(any_pull(own_children));
    for (int i = dice_.between(1, 3); i > 0; --i)
      u.pauses.push_back(dice_.percent(50) ? 0 : dice_.between(1, 10));
    if (u.what == consumer::service) u.cancel_after = -1;
    return u;
  }
  pull any_pull(bool own_children) {
    if (dice_.percent(40)) return pull::plain;
    const int last = static_cast<int>(own_children ? pull::in_child : pull::count);
    return static_cast<pull>(dice_.below(last));
  }

  dice dice_;
  int sources_ = 0;
};

}  // namespace

pipeline_plan make_pipeline_plan(std::uint64_t seed) { return planner(seed).make(seed); }

bool is_source(op what) { return what <= op::last_source; }
bool withdrawable(awaits what) { return what <= awaits::last_withdrawable; }

bool pulls_by_itself(op what) {
  switch (what) {
    case op::shared:
    case op::flat_map_concurrent:
    case op::map_async:
    case op::map_async_failing:
    case op::map_async_unordered:
    case op::map_async_call:
    case op::buffered:
    case op::buffered_at_once:
    case op::buffer_wait:
    case op::buffer_drop_oldest:
    case op::buffer_drop_newest:
    case op::buffer_conflate:
    case op::conflate:
    case op::debounce:
    case op::sample:
    case op::delay:
      return true;
    default:
      return false;
  }
}

}  // namespace fuzz
