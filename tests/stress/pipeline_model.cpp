// SPDX-License-Identifier: MIT
// What a random pipeline must give, computed from its plan by plain functions over vectors.
#include <algorithm>
#include <map>
#include <sstream>

#include "stress/pipeline_plan.hpp"
#include "stress/pipeline_values.hpp"

namespace fuzz {

namespace {

using numbers = std::vector<int>;

bool ordered(known k) { return k <= known::as_sequence; }
/// The items are known, but not where they end or in which order.
known weaken_to_prefix(known k) {
  return k == known::exactly ? known::as_prefix : k == known::as_bag ? known::in_part : k;
}
known weaken_to_sequence(known k) {
  if (k == known::as_set) return k;
  return ordered(k) ? known::as_sequence : known::in_part;
}
known weaken_to_bag(known k) {
  if (k == known::exactly || k == known::as_bag) return known::as_bag;
  return k == known::as_set ? k : known::in_part;
}

void note_trouble(expectation& into, const expectation& from) {
  into.ends = into.ends && from.ends;
  into.may_fail = into.may_fail || from.may_fail || from.must_fail;
  into.may_lag = into.may_lag || from.may_lag;
  into.may_time_out = into.may_time_out || from.may_time_out;
  into.interruptible = into.interruptible || from.interruptible;
  into.interrupts = into.interrupts || from.interrupts;
}

class modeller {
 public:
  modeller(bool gives_up, bool has_deadlines)
      : gives_up_(gives_up), has_deadlines_(has_deadlines) {}

  expectation of(const node& n) {
    if (is_source(n.what)) return source(n);
    if (n.inputs.size() > 1) return joined(n);
    expectation e = of(n.inputs.front());
    if (pulls_by_itself(n.what)) e.interruptible = false;
    if (n.what <= op::skip_last) return transformed(n, std::move(e));
    return concurrent(n, std::move(e));
  }

 private:
  expectation source(const node& n) const {
    expectation e;
    switch (n.what) {
      case op::generator:
        e.must_fail = n.b >= 0;
        e.items = counted(n.a, static_cast<int>(n.steps.size()));
        if (e.must_fail && n.b < static_cast<int>(n.steps.size()))
          e.items.resize(static_cast<std::size_t>(n.b));
        e.interruptible = !std::all_of(n.steps.begin(), n.steps.end(),
                                       [](const step& s) { return withdrawable(s.what); });
        return e;
      case op::from_broadcast:
        e.items = counted(n.a, n.b);
        if (n.c > 0) e.how = known::as_sequence;
        e.may_lag = n.c == 3;
        return e;
      case op::from_state:
        e.items = counted(n.a, n.b + 1);
        e.how = known::as_sequence;
        e.ends = false;
        return e;
      case op::once:
        e.items = counted(n.a, 1);
        return e;
      case op::never:
        e.ends = false;
        return e;
      case op::empty:
        return e;
      case op::retried:
        for (int i = 0; i <= n.c; ++i)
          for (const int v : counted(n.a + 10 * i, n.b)) e.items.push_back(v);
        // A retry that would sleep beyond the deadline gives the error instead.
        e.may_fail = has_deadlines_;
        if (has_deadlines_) e.how = known::as_prefix;
        return e;
      default:
        e.items = counted(n.a, n.b);
        return e;
    }
  }

  expectation transformed(const node& n, expectation e) const {
    switch (n.what) {
      case op::passed_impatiently:
        if (e.interruptible) {
          e.interrupts = true;
          e.how = weaken_to_prefix(e.how);
        }
        return e;
      case op::map:
        for (int& v : e.items) v = mapped(v);
        return e;
      case op::filter:
      case op::filter_map:
        std::erase_if(e.items, [&](int v) { return !kept(v, n.a); });
        return e;
      case op::dedup:
      case op::distinct:
        return without_repeats(n, std::move(e));
      case op::start_with:
        e.items.insert(e.items.begin(), extra_item);
        if (e.how == known::as_sequence || e.how == known::as_prefix) e.how = known::as_sequence;
        return e;
      case op::take:
        return first_items(static_cast<std::size_t>(n.a), std::move(e));
      case op::take_while:
        return leading_items(n, std::move(e));
      case op::take_until:
        e.how = weaken_to_prefix(e.how);
        e.may_fail = e.may_fail || e.must_fail;
        e.must_fail = false;
        return e;
      case op::drop:
        return without_first(static_cast<std::size_t>(n.a), std::move(e));
      case op::drop_while: {
        const std::size_t dropped = leading(e.items, n.a);
        return without_first(dropped, std::move(e));
      }
      case op::take_last:
      case op::skip_last:
        return without_end(n, std::move(e));
      default:
        return e;
    }
  }

  static expectation without_repeats(const node& n, expectation e) {
    if (e.how > known::as_prefix) {
      e.how = weaken_to_sequence(e.how);
      return e;
    }
    numbers left;
    for (const int v : e.items) {
      const bool seen = n.what == op::dedup ? !left.empty() && left.back() == v
                                            : std::find(left.begin(), left.end(), v) != left.end();
      if (!seen) left.push_back(v);
    }
    e.items = left;
    return e;
  }
  static std::size_t leading(const numbers& items, int k) {
    return static_cast<std::size_t>(
        std::find_if(items.begin(), items.end(), [&](int v) { return !early(v, k); }) -
        items.begin());
  }
  /// take and take_while: the stream ends behind them, unless it ended before.
  static expectation first_items(std::size_t count, expectation e) {
    if (e.how > known::as_prefix) {
      e.how = weaken_to_sequence(e.how);
      e.may_fail = e.may_fail || e.must_fail;
      e.must_fail = false;
      return e;
    }
    if (count >= e.items.size() + (e.must_fail ? 1 : 0)) return e;
    if (count > e.items.size()) return e;
    e.items.resize(count);
    e.must_fail = false;
    return e;
  }
  static expectation leading_items(const node& n, expectation e) {
    const std::size_t count = leading(e.items, n.a);
    if (e.how <= known::as_prefix && count == e.items.size()) return e;
    return first_items(count, std::move(e));
  }
  static expectation without_first(std::size_t count, expectation e) {
    if (e.how > known::as_prefix) {
      e.how = weaken_to_sequence(e.how);
      return e;
    }
    e.items.erase(e.items.begin(),
                  e.items.begin() + static_cast<std::ptrdiff_t>(std::min(count, e.items.size())));
    return e;
  }
  static expectation without_end(const node& n, expectation e) {
    if (e.how != known::exactly || e.must_fail) {
      e.how = weaken_to_sequence(e.how);
      // take_last(0) may end without a pull.
      e.may_fail = e.may_fail || e.must_fail;
      e.must_fail = e.must_fail && n.a > 0;
      return e;
    }
    const std::size_t count = std::min(static_cast<std::size_t>(n.a), e.items.size());
    const auto end = e.items.end() - static_cast<std::ptrdiff_t>(count);
    e.items = n.what == op::take_last ? numbers(end, e.items.end()) : numbers(e.items.begin(), end);
    return e;
  }

  expectation concurrent(const node& n, expectation e) const {
    switch (n.what) {
      case op::flat_map: {
        numbers all;
        for (const int v : e.items) all.insert(all.end(), {v, inner_item(v)});
        e.items = all;
        return e;
      }
      case op::flat_map_generator:
        e.interruptible = true;
        return e;
      case op::flat_map_concurrent:
      case op::map_async_unordered:
        e.how = e.must_fail ? weaken_to_prefix(weaken_to_bag(e.how)) : weaken_to_bag(e.how);
        return e;
      case op::map_async_failing:
        return failing(std::move(e));
      case op::chunks:
      case op::timed_chunks:
      case op::ready_chunks:
      case op::group_by:
        if (e.must_fail) e.how = weaken_to_prefix(e.how);
        return e;
      case op::switch_map:
        e.interruptible = true;
        e.how = weaken_to_sequence(e.how);
        return e;
      case op::sliding:
      case op::buffer_drop_oldest:
      case op::buffer_drop_newest:
      case op::buffer_conflate:
      case op::conflate:
      case op::throttle:
      case op::debounce:
      case op::sample:
        e.how = weaken_to_sequence(e.how);
        return e;
      case op::timeout_each:
        e.may_time_out = e.may_time_out || !e.ends;
        return e;
      case op::timeout_each_short:
        e.how = weaken_to_prefix(e.how);
        e.may_fail = e.may_fail || e.must_fail;
        e.must_fail = false;
        e.may_time_out = true;
        return e;
      case op::catch_with:
        return caught(std::move(e));
      default:
        return e;
    }
  }
  static expectation failing(expectation e) {
    const auto bad = std::find_if(e.items.begin(), e.items.end(), fails);
    if (bad == e.items.end()) return e;
    if (e.how == known::exactly) {
      e.items.erase(bad, e.items.end());
      e.must_fail = true;
      return e;
    }
    e.how = weaken_to_sequence(e.how);
    e.may_fail = true;
    return e;
  }
  expectation caught(expectation e) const {
    const bool interrupted = e.interrupts || (e.interruptible && gives_up_);
    const bool may = e.may_fail || e.may_lag || e.may_time_out || interrupted;
    if (!e.must_fail && !may) return e;
    if (!e.must_fail || may) e.how = weaken_to_sequence(e.how);
    if (e.how == known::as_prefix) e.how = known::as_sequence;
    for (int i = 0; i < recovery_items; ++i) e.items.push_back(extra_item + 1 + i);
    e.must_fail = e.may_fail = e.may_lag = e.may_time_out = e.interrupts = false;
    if (gives_up_) e.interruptible = false;
    return e;
  }

  expectation joined(const node& n) {
    std::vector<expectation> parts;
    for (const node& i : n.inputs) parts.push_back(of(i));
    switch (n.what) {
      case op::merge:
        return merged(parts);
      case op::concat:
        return in_a_row(parts);
      case op::zip:
        return zipped(parts);
      case op::with_latest_from: {
        expectation e = std::move(parts[0]);
        e.how = weaken_to_sequence(e.how);
        e.may_fail = e.may_fail || e.must_fail;
        e.must_fail = false;
        note_trouble(e, parts[1]);
        return e;
      }
      default: {
        expectation e = merged(parts);
        e.may_fail = e.may_fail || e.must_fail;
        e.must_fail = false;
        e.how =
            n.what == op::combine_latest || e.how == known::as_set ? known::as_set : known::in_part;
        return e;
      }
    }
  }
  static expectation merged(const std::vector<expectation>& parts) {
    expectation all;
    all.how = known::as_bag;
    for (const expectation& e : parts) {
      all.items.insert(all.items.end(), e.items.begin(), e.items.end());
      note_trouble(all, e);
      all.must_fail = all.must_fail || e.must_fail;
      all.how = std::max(all.how, weaken_to_bag(e.how));
    }
    if (all.must_fail && all.how == known::as_bag) all.how = known::in_part;
    return all;
  }
  static expectation in_a_row(const std::vector<expectation>& parts) {
    expectation all = parts.front();
    for (std::size_t i = 1; i < parts.size() && !all.must_fail; ++i) {
      const expectation& e = parts[i];
      all.items.insert(all.items.end(), e.items.begin(), e.items.end());
      const known before = all.how == known::as_prefix ? known::as_sequence : all.how;
      all.how = std::max(before, e.how);
      if (before == known::as_sequence && e.how == known::as_bag) all.how = known::in_part;
      if (before == known::as_bag && ordered(e.how) && e.how != known::exactly)
        all.how = known::in_part;
      all.must_fail = e.must_fail;
      const bool may_fail = all.may_fail || e.may_fail;
      note_trouble(all, e);
      all.may_fail = may_fail;
    }
    if (all.may_fail && all.how == known::exactly) all.how = known::as_prefix;
    return all;
  }
  static expectation zipped(const std::vector<expectation>& parts) {
    expectation e = parts[0];
    const expectation& other = parts[1];
    const bool certain =
        e.how == known::exactly && other.how == known::exactly && !e.must_fail && !other.must_fail;
    if (ordered(e.how) && e.how != known::as_sequence)
      e.items.resize(std::min(e.items.size(), other.items.size()));
    if (!certain) e.how = weaken_to_prefix(e.how);
    e.may_fail = e.may_fail || e.must_fail;
    e.must_fail = false;
    note_trouble(e, other);
    return e;
  }

  bool gives_up_;
  bool has_deadlines_;
};

bool gives_up_by_itself(const node& n) {
  return n.what == op::passed_impatiently ||
         std::any_of(n.inputs.begin(), n.inputs.end(), gives_up_by_itself);
}

bool is_prefix(const numbers& got, const numbers& of) {
  return got.size() <= of.size() && std::equal(got.begin(), got.end(), of.begin());
}
bool is_subsequence(const numbers& got, const numbers& of) {
  std::size_t at = 0;
  for (const int v : got) {
    while (at < of.size() && of[at] != v) ++at;
    if (at++ >= of.size()) return false;
  }
  return true;
}
bool is_part(const numbers& got, const numbers& of) {
  std::map<int, int> left;
  for (const int v : of) ++left[v];
  return std::all_of(got.begin(), got.end(), [&](int v) { return left[v]-- > 0; });
}
bool is_among(const numbers& got, const numbers& of) {
  return std::all_of(got.begin(), got.end(),
                     [&](int v) { return std::find(of.begin(), of.end(), v) != of.end(); });
}

bool holds(const expectation& wanted, const numbers& got, bool whole) {
  switch (wanted.how) {
    case known::exactly:
      return is_prefix(got, wanted.items) && (!whole || got.size() == wanted.items.size());
    case known::as_prefix:
      return is_prefix(got, wanted.items);
    case known::as_sequence:
      return is_subsequence(got, wanted.items);
    case known::as_bag:
      return is_part(got, wanted.items) && (!whole || got.size() == wanted.items.size());
    case known::in_part:
      return is_part(got, wanted.items);
    default:
      return is_among(got, wanted.items);
  }
}

}  // namespace

bool gives_up(const usage& use) {
  if (use.hops) return true;
  return use.what == consumer::pulls && std::any_of(use.ways.begin(), use.ways.end(), [](pull p) {
           return p != pull::plain && p != pull::settled;
         });
}

expectation expect(const pipeline_plan& plan) {
  const bool gives = gives_up(plan.use);
  const bool deadlines = gives || plan.use.cancel_after >= 0 || gives_up_by_itself(plan.stream);
  return modeller(gives, deadlines).of(plan.stream);
}

std::string compare(const expectation& wanted, const numbers& got, bool whole) {
  if (holds(wanted, got, whole)) return {};
  std::ostringstream out;
  static constexpr const char* names[] = {
      "exactly", "a prefix of", "in this order some of", "in any order all of",
      "some of", "nothing but"};
  out << "expected " << names[static_cast<int>(wanted.how)] << (whole ? "" : " (not to the end)");
  for (const int v : wanted.items) out << " " << v;
  out << "; got";
  for (const int v : got) out << " " << v;
  return out.str();
}

}  // namespace fuzz
