// SPDX-License-Identifier: MIT
// Consumers of random pipelines that are a sink, with and without a governor.
#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

void keep(findings& found, const std::vector<item>& all) {
  for (const item& i : all) found.got.push_back(i.value());
  found.ended = true;
}
void keep_one(findings& found, const std::optional<item>& one) {
  if (one) found.got.push_back(one->value());
  found.only_some = true;
}

std::vector<int> with_one_more(std::vector<int> all, const item& i) {
  all.push_back(i.value());
  return all;
}
item later_one(const item&, const item& b) { return item(b.value()); }
bool is_special(const item& i) { return i.value() % 10 == 3; }
task<bool> is_special_later(item i) {
  co_await weir::sleep(ms(i.value() % 3));
  co_return is_special(i);
}

/// Calls `sink(fn..., g)` or `sink(fn...)`.
template <class... G>
task<> by_predicate(const usage& use, findings& found, items st, G&... g) {
  found.only_some = true;
  switch (use.what) {
    case consumer::find: {
      auto one = co_await (std::move(st) | weir::find(is_special_later, g...));
      keep_one(found, one);
      break;
    }
    case consumer::any_of:
      (void)co_await (std::move(st) | weir::any_of(is_special, g...));
      break;
    case consumer::all_of:
      (void)co_await (std::move(st) | weir::all_of(is_special_later, g...));
      break;
    default:
      (void)co_await (std::move(st) | weir::none_of(is_special_later, g...));
      break;
  }
}

template <class... G>
task<> by_each(const usage& use, findings& found, items st, G&... g) {
  found.unordered = sizeof...(G) > 0;
  if (use.what == consumer::for_each) {
    auto note = [&](const item& i) { found.got.push_back(i.value()); };
    co_await (std::move(st) | weir::for_each(note, g...));
  } else {
    auto note = [&](item i) -> task<> {
      co_await weir::sleep(ms(i.value() % 4));
      found.got.push_back(i.value());
    };
    co_await (std::move(st) | weir::for_each(note, g...));
  }
  found.ended = true;
}

template <class... G>
task<> by_any_sink(const usage& use, findings& found, items st, G&... g) {
  switch (use.what) {
    case consumer::to_vector: {
      auto all = co_await (std::move(st) | weir::to_vector(g...));
      keep(found, all);
      break;
    }
    case consumer::count_items: {
      auto n = co_await (std::move(st) | weir::count(g...));
      found.count = static_cast<long>(n);
      break;
    }
    case consumer::fold: {
      auto all = co_await (std::move(st) | weir::fold(std::vector<int>(), with_one_more, g...));
      found.got = all;
      found.ended = true;
      break;
    }
    case consumer::reduce: {
      auto one = co_await (std::move(st) | weir::reduce(later_one, g...));
      keep_one(found, one);
      break;
    }
    case consumer::first: {
      auto one = co_await (std::move(st) | weir::first(g...));
      if (one) found.got.push_back(one->value());
      break;
    }
    case consumer::last: {
      auto one = co_await (std::move(st) | weir::last(g...));
      keep_one(found, one);
      break;
    }
    case consumer::for_each:
    case consumer::for_each_task:
      co_await by_each(use, found, std::move(st), g...);
      break;
    default:
      co_await by_predicate(use, found, std::move(st), g...);
      break;
  }
}

}  // namespace

task<> consume_by_sink(world& w, const usage& use, findings& found, items stream) {
  if (!use.governed) return by_any_sink(use, found, std::move(stream));
  return permitted(w, use.by, use.width, [&](auto&& g) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(g)>, int>) {
      return by_any_sink(use, found, std::move(stream), use.width);
    } else {
      return by_any_sink(use, found, std::move(stream), g);
    }
  });
}

}  // namespace fuzz
