// SPDX-License-Identifier: MIT
#include "stress/tree_plan.hpp"

#include <algorithm>

namespace fuzz {

namespace {

constexpr const char* names[] = {
    "value",        "sleeps",    "yields", "fails",    "flaky", "blocks", "job",
    "submit",       "on",        "run",    "timeout",  "retry", "settle", "shield",
    "local",        "cancelled", "token",  "deferred", "agent", "all",    "all_range",
    "parallel_map", "race",      "any",    "hedge",    "scope", "group",  "map_async"};
static_assert(std::size(names) == static_cast<std::size_t>(branch::count));

constexpr int most_nodes = 60;

class gardener {
 public:
  explicit gardener(std::uint64_t seed) : dice_(seed) {}

  tree_plan plan(std::uint64_t seed, bool threads) {
    tree_plan p;
    p.seed = seed;
    p.in = any_order(dice_);
    for (int i = 0; i < pools; ++i) {
      p.workers[i] = dice_.between(1, 3);
      p.queue[i] = dice_.percent(20) ? 16 : dice_.between(1, 3);
    }
    if (dice_.percent(50))
      p.what = static_cast<blow>(dice_.between(
          1, threads ? static_cast<int>(blow::close_pool) : static_cast<int>(blow::crash_worker)));
    p.when = dice_.below(40);
    p.where = dice_.below(2);
    p.root = grow(0, 0);
    p.size = next_;
    return p;
  }

 private:
  static bool is_leaf(branch b) { return b < branch::on; }
  static bool is_wide(branch b) { return b >= branch::all; }

  branch any_branch(int depth) {
    if (next_ >= most_nodes || depth > 9 || dice_.percent(depth * 6))
      return static_cast<branch>(dice_.below(static_cast<int>(branch::on)));
    return static_cast<branch>(
        dice_.between(static_cast<int>(branch::on), static_cast<int>(branch::count) - 1));
  }
  /// Pools below `free` are in use by a caller that waits for this: to wait for them might never
  /// end.
  tree grow(int depth, int free) {
    tree t;
    t.id = next_++;
    t.what = any_branch(depth);
    const bool needs_pool =
        t.what == branch::run || t.what == branch::submits || t.what == branch::answered_by_a_job;
    if (needs_pool && free == pools) t.what = branch::sleeps;
    t.micros = dice_.percent(20) ? 0 : dice_.between(1, 12);
    if (t.what == branch::timeout || t.what == branch::cancelled_child || t.what == branch::token)
      t.micros = dice_.between(0, 40);
    t.number = dice_.between(1, 4);
    t.place = needs_pool && free < pools ? dice_.between(free, pools - 1) : dice_.below(2);
    const int below = t.what == branch::run ? t.place + 1 : free;
    const int children = is_leaf(t.what) ? 0 : is_wide(t.what) ? dice_.between(1, 4) : 1;
    for (int i = 0; i < children; ++i) t.of.push_back(grow(depth + 1, below));
    t.last = next_ - 1;
    t.prompt = t.what != branch::shield && t.what != branch::agent && t.what != branch::deferred &&
               std::all_of(t.of.begin(), t.of.end(), [](const tree& c) { return c.prompt; });
    return t;
  }

  dice dice_;
  int next_ = 0;
};

void write(std::string& out, const tree& t, int depth) {
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
  out += std::to_string(t.id) + " " + names[static_cast<int>(t.what)] + " " +
         std::to_string(t.micros) + "us n=" + std::to_string(t.number) +
         " at=" + std::to_string(t.place) + "\n";
  for (const tree& below : t.of) write(out, below, depth + 1);
}

}  // namespace

tree_plan make_tree_plan(std::uint64_t seed, bool threads) {
  return gardener(seed).plan(seed, threads);
}

std::string to_text(const tree_plan& p) {
  static constexpr const char* blows[] = {"nothing happens",     "it is cancelled",
                                          "a pool is cancelled", "a pool is closed",
                                          "a loop crashes",      "a worker crashes"};
  std::string out = std::string("order ") + name_of(p.in) + ", pools";
  for (int i = 0; i < pools; ++i)
    out += " " + std::to_string(p.workers[i]) + "+" + std::to_string(p.queue[i]);
  out += std::string(", ") + blows[static_cast<int>(p.what)] + " (" + std::to_string(p.where) +
         ") after " + std::to_string(p.when) + "us\n";
  write(out, p.root, 0);
  return out;
}

}  // namespace fuzz
