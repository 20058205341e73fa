// SPDX-License-Identifier: MIT
// Consumers of random pipelines that ask for one item after the other.
#include <variant>

#include "stress/pipeline_world.hpp"

namespace fuzz {

namespace {

enum class got : std::uint8_t { an_item, the_end, nothing };

/// One pull: what it gave.
struct pulled {
  got what = got::nothing;
  int value = 0;

  void take(const std::optional<item>& i) {
    what = i ? got::an_item : got::the_end;
    if (i) value = i->value();
  }
};

/// A child that pulls; its error is kept, so that it does not fail the scope.
task<> pull_into(items& st, pulled& p, std::exception_ptr& error) {
  try {
    auto i = co_await st.next();
    p.take(i);
  } catch (...) {
    error = std::current_exception();
  }
}

task<> wait_for_the_end_of(weir::child<void>& c) {
  try {
    co_await c;
  } catch (const weir::cancelled_error&) {
  }
}

class puller {
 public:
  puller(world& w, const usage& use, findings& found) : w_(w), use_(use), found_(found) {}

  /// Up to so many items (-1: all), or to the end.
  task<> pull_some(items& st, weir::scope& s, int limit) {
    while (!found_.ended && (limit < 0 || limit-- > 0)) co_await pull_one(st, s);
  }
  /// Behind its end, and behind an error, a stream is empty.
  task<> pull_behind_the_end(items& st) {
    auto i = co_await st.next();
    // An item whose move throws on its way out of next() has not ended the stream.
    if (i && !w_.counted_items.burnt()) w_.problem("there was an item behind the end");
  }

 private:
  task<> pull_one(items& st, weir::scope& s) {
    for (int trials = 0;; ++trials) {
      const int pause = use_.pauses[at_ % use_.pauses.size()];
      const pull way = use_.ways[at_ % use_.ways.size()];
      ++at_;
      if (pause > 0) co_await weir::sleep(ms(pause));
      const weir::duration patience = ms(use_.patience) * (1L << std::min(trials, 24));
      pulled p;
      if (way < pull::settled) {
        co_await pull_patiently(st, way, patience, p);
      } else {
        co_await pull_apart(st, s, way, patience, p);
      }
      if (p.what == got::nothing) continue;
      found_.ended = p.what == got::the_end;
      if (!found_.ended) found_.got.push_back(p.value);
      co_return;
    }
  }

  task<> pull_patiently(items& st, pull way, weir::duration patience, pulled& p) {
    switch (way) {
      case pull::plain: {
        auto i = co_await st.next();
        p.take(i);
        break;
      }
      case pull::timeout:
        try {
          auto i = co_await weir::with_timeout(patience, st.next());
          p.take(i);
        } catch (const weir::timeout_error&) {
          // This limit, or the stream's own: then the next pull finds the end.
        }
        break;
      case pull::race_sleep: {
        auto first = co_await weir::race(st.next(), weir::sleep(patience));
        if (first.index() == 0) p.take(std::get<0>(first));
        break;
      }
      case pull::any_sleep: {
        auto first = co_await weir::any(st.next(), weir::sleep(patience));
        if (first.index() == 0) p.take(std::get<0>(first));
        break;
      }
      default:
        co_await pull_beside_a_queue(st, patience, p);
        break;
    }
  }
  /// A race between two sources: what the loser had is still there.
  task<> pull_beside_a_queue(items& st, weir::duration patience, pulled& p) {
    weir::queue<int>& q = w_.numbers.emplace_back(1);
    auto later = [](weir::queue<int>& to, weir::duration d) -> task<> {
      co_await weir::sleep(d);
      (void)to.try_push(1);
    };
    w_.beside(later(q, patience));
    auto first = co_await weir::race(st.next(), q.next());
    if (first.index() == 0) p.take(std::get<0>(first));
  }

  task<> pull_apart(items& st, weir::scope& s, pull way, weir::duration patience, pulled& p) {
    if (way == pull::settled) {
      auto how = co_await weir::settle(st.next());
      p.take(how.value());
      co_return;
    }
    if (way == pull::next_for) {
      co_await pull_for(st, patience, p);
      co_return;
    }
    std::exception_ptr error;
    auto child = s.spawn(pull_into(st, p, error));
    if (way == pull::in_cancelled_child) {
      co_await weir::sleep(patience);
      child.cancel("the pull is given up");
    }
    co_await wait_for_the_end_of(child);
    if (error != nullptr) std::rethrow_exception(error);
  }
  template <class S>
  static task<> pull_for(S& st, weir::duration patience, pulled& p) {
    if constexpr (requires { st.next_for(patience); }) {
      auto r = co_await st.next_for(patience);
      if (!r.timed_out()) p.take(r.item());
    } else {
      auto i = co_await st.next();
      p.take(i);
    }
  }

  world& w_;
  const usage& use_;
  findings& found_;
  std::size_t at_ = 0;
};

/// Errors of the stream are findings.
task<> pull_all(world& w, const usage& use, findings& found, items& st, weir::scope& s) {
  puller p(w, use, found);
  try {
    if (use.hops) {
      auto first = [&](weir::scope& inner) -> task<> { co_await p.pull_some(st, inner, 2); };
      co_await weir::with_scope(first);
      auto rest = [&](weir::scope& inner) -> task<> {
        co_await p.pull_some(st, inner, use.items < 0 ? -1 : std::max(use.items - 2, 0));
      };
      co_await weir::with_scope(rest);
    } else {
      co_await p.pull_some(st, s, use.items);
    }
  } catch (...) {
    found.error = std::current_exception();
  }
  if (found.ended || found.error != nullptr) co_await p.pull_behind_the_end(st);
  if (use.end == ending::closed) {
    co_await st.close();
    co_await p.pull_behind_the_end(st);
  }
}

task<> consume_by_pulls(world& w, const usage& use, findings& found) {
  if (use.outside) {
    items made = build(w, w.plan.stream);
    items st = std::move(made);
    auto body = [&](weir::scope& s) -> task<> { co_await pull_all(w, use, found, st, s); };
    co_await weir::with_scope(body);
    co_await weir::sleep(ms(2));
  } else {
    auto body = [&](weir::scope& s) -> task<> {
      items st = build(w, w.plan.stream);
      co_await pull_all(w, use, found, st, s);
    };
    co_await weir::with_scope(body);
  }
}

}  // namespace

task<> consume(world& w, const usage& use, findings& found) {
  if (use.what == consumer::pulls) {
    co_await consume_by_pulls(w, use, found);
    co_return;
  }
  auto body = [&](weir::scope&) -> task<> {
    try {
      items st = build(w, w.plan.stream);
      if (use.what == consumer::service) {
        co_await consume_as_service(w, use, found, std::move(st));
      } else if (use.what == consumer::broadcast) {
        co_await consume_shared(w, use, found, std::move(st));
      } else {
        co_await consume_by_sink(w, use, found, std::move(st));
      }
    } catch (...) {
      found.error = std::current_exception();
    }
  };
  co_await weir::with_scope(body);
}

}  // namespace fuzz
