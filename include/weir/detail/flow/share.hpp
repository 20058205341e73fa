// SPDX-License-Identifier: MIT
// Part of <weir/stream/share.hpp>, which includes it after the declarations it needs.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <weir/broadcast.hpp>
#include <weir/combinators.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/flow/gate.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>

namespace weir {

namespace detail {

void require_share_options(const share_options& options);
/// errc::stream_interrupted; null while a crash destroys the loop.
std::exception_ptr share_interrupted() noexcept;

/// The state shared by the handle and the child that pulls.
template <class T>
struct share_core {
  explicit share_core(const share_options& o) : options(o), out(o.capacity) {
    out.notify_when_empty(&left);
  }
  ~share_core() { out.notify_when_empty(nullptr); }
  share_options options;
  gate first{"first subscriber of a shared stream", false, {}};
  gate left{"last subscriber of a shared stream", false, {}};
  broadcast<T> out;
};

/// Ends all subscriptions when the child is cancelled, even before it started.
template <class T>
class share_end {
 public:
  explicit share_end(std::shared_ptr<share_core<T>> core) noexcept : core_(std::move(core)) {}
  share_end(share_end&&) noexcept = default;
  share_end& operator=(share_end&&) = delete;
  ~share_end() {
    if (core_ == nullptr || core_->out.closed()) return;
    if (auto error = share_interrupted()) core_->out.interrupt(std::move(error));
  }
  share_core<T>& operator*() const noexcept { return *core_; }

 private:
  std::shared_ptr<share_core<T>> core_;
};

template <class S>
struct share_pump {
  using core = share_core<value_of<S>>;
  static task<> run(share_end<value_of<S>> c, S stage) {
    weir::pipeline<S> source(std::move(stage));
    auto pump = [&] { return pull_all(*c, source); };
    auto close = [&] { return source.close(); };
    using around = finally_region<decltype(close)>;
    co_await run_region<void, around, decltype(pump)&>(typename around::setup(close), pump);
  }
  static task<> pull_all(core& c, weir::pipeline<S>& source) {
    if (c.options.start == when::first_subscriber) co_await pending<gate_wait>({&c.first});
    std::exception_ptr error;
    try {
      for (;;) {
        std::optional<value_of<S>> item = co_await next_of(c, source);
        if (!item) break;
        co_await c.out.emit(std::move(*item));
      }
    } catch (...) {
      error = std::current_exception();
    }
    if (error == nullptr) {
      c.out.close();
    } else {
      const bool heard = c.out.subscribers() > 0;
      c.out.fail(error);
      if (!heard) std::rethrow_exception(error);
    }
  }
  /// The next item; empty at the end, or when no subscriber is left.
  static task<std::optional<value_of<S>>> next_of(core& c, weir::pipeline<S>& source) {
    if (c.options.stop == when::never) co_return co_await source.next();
    auto got = co_await race(source.next(), pending<gate_wait>({&c.left}));
    if (got.index() == 0) co_return std::get<0>(std::move(got));
    co_return std::nullopt;
  }
};

}  // namespace detail
}  // namespace weir
