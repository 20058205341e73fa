// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/flat_map.hpp>.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <weir/detail/flow/pump.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/queue.hpp>
#include <weir/scope.hpp>
#include <weir/stream/async.hpp>
#include <weir/stream/join.hpp>

namespace weir {

namespace detail {

/// Each item has a child that pulls its stream and hands over one item at a time, in order of
/// arrival. A permit is held from the pull of an item to the end of its stream.
template <class S, class G, class F>
class flat_map_state : public pump_base {
  using item = value_of<S>;
  using inner = inner_stream<call_t<F, item>>;

 public:
  using value_type = typename inner::value_type;
  static constexpr bool leaves_pending = true;

  flat_map_state(S stage, G g, F f)
      : source(std::move(stage)), permits_(std::move(g)), fn_(std::move(f)) {}

  static task<> feed(flat_map_state& self) {
    auto body = [&](scope& s) -> task<> {
      for (;;) {
        permit held = co_await self.permits_.governor().acquire();
        auto next = co_await self.source.next();
        if (!next) break;
        s.spawn(pull_one(self, std::move(*next), std::move(held)));
      }
      co_await s.join();
    };
    try {
      co_await with_scope({.name = "flat_map"}, body);
    } catch (...) {
      self.failure_ = std::current_exception();
    }
    self.items_.close();
  }
  pull take(std::optional<value_type>& out, composite& owner) {
    if (!next_.made()) next_.make({&items_});
    if (!over_) {
      if (!next_.poll(owner)) return wait_for_news(owner);
      out = next_.take();
      if (out) return pull::value;
      over_ = true;
    }
    if (!poll_end(owner)) return pull::pending;
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    return pull::end;
  }
  unsigned withdraw_all() noexcept { return next_.withdraw_all() + pump_base::withdraw_all(); }
  void clear() noexcept { items_.discard(); }

  weir::pipeline<S> source;

 private:
  static task<> pull_one(flat_map_state& self, item what, permit) {
    inner stream = as_inner(self.fn_(std::move(what)));
    auto pass = [&] { return pass_on_all(self, stream); };
    auto close = [&] { return stream.close(); };
    using around = finally_region<decltype(close)>;
    co_await run_region<void, around, decltype(pass)&>(typename around::setup(close), pass);
  }
  static task<> pass_on_all(flat_map_state& self, inner& stream) {
    while (auto next = co_await stream.next()) co_await self.items_.push(std::move(*next));
  }

  G permits_;
  F fn_;
  queue<value_type> items_{0};
  wait_leaf<next_wait<value_type>> next_;
  std::exception_ptr failure_;
  bool over_ = false;  // the queue has ended
};

template <class S, class G, class F>
class flat_map_async_stage : public pump_stage<flat_map_state<S, G, F>> {
 public:
  flat_map_async_stage(S source, G g, F fn)
      : pump_stage<flat_map_state<S, G, F>>(std::make_shared<flat_map_state<S, G, F>>(
            std::move(source), std::move(g), std::move(fn))) {}
};

}  // namespace detail
}  // namespace weir
