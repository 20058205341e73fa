// SPDX-License-Identifier: MIT
// The machinery of <weir/stream/flat_map.hpp>.
#pragma once

#include <optional>
#include <utility>

#include <weir/detail/flow/collecting_pump.hpp>
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
class flat_map_state : public collecting_pump<S, flat_map_state<S, G, F>, G> {
  using base = collecting_pump<S, flat_map_state, G>;
  using item = value_of<S>;
  using inner = inner_stream<call_t<F, item>>;

 public:
  using value_type = typename inner::value_type;
  static constexpr const char* scope_name = "flat_map";

  flat_map_state(S stage, G g, F f) : base(std::move(stage), std::move(g)), fn_(std::move(f)) {}

  void collect(item&& what, permit&& held) {
    this->workers().spawn(pull_one(*this, std::move(what), std::move(held)));
  }
  void collected() { items_.close(); }
  pull give(std::optional<value_type>& out, composite& owner) {
    if (over_) return pull::end;
    if (!next_.made()) next_.make({&items_});
    if (!next_.poll(owner)) return this->wait_for_news(owner);
    out = next_.take();
    over_ = !out;
    return over_ ? pull::end : pull::value;
  }
  unsigned withdraw_all() noexcept { return next_.withdraw_all() + pump_base::withdraw_all(); }
  void clear() noexcept { items_.discard(); }

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

  F fn_;
  queue<value_type> items_{0};
  wait_leaf<next_wait<value_type>> next_;
  bool over_ = false;  // the queue has ended
};

template <class S, class G, class F>
using flat_map_async_stage = pump_stage<flat_map_state<S, G, F>>;

}  // namespace detail
}  // namespace weir
