// SPDX-License-Identifier: MIT
// `share(scope, stream)`: makes a cold stream hot, so that several subscribers see the same items.
// A background child of the scope owns and pulls the stream; the handle and the subscriptions share
// a broadcast with it. All are used on that scope's loop. It ends when the source does, when its
// last subscriber leaves (unless told otherwise), or with the scope.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <weir/broadcast.hpp>
#include <weir/combinators.hpp>
#include <weir/detail/core/run_region.hpp>
#include <weir/detail/flow/gate.hpp>
#include <weir/detail/flow/stream_op.hpp>
#include <weir/policy/settle.hpp>
#include <weir/scope.hpp>

namespace weir {

/// When a shared stream starts and stops.
enum class when : std::uint8_t { first_subscriber, now, no_subscribers, never };

struct share_options {
  std::int64_t capacity = 64;
  weir::overflow overflow = weir::overflow::wait;  ///< default of subscribe()
  when start = when::first_subscriber;
  when stop = when::no_subscribers;
  std::int64_t replay = 0;  ///< default of subscribe()
};

}  // namespace weir

#include <weir/detail/flow/share.hpp>

namespace weir {

/// A handle to a stream made hot by `share`. Movable. Subscriptions may outlive it.
template <class T>
class shared_stream {
 public:
  /// With the options given to `share`.
  [[nodiscard]] subscription<T> subscribe() {
    return subscribe({.overflow = core_->options.overflow, .replay = core_->options.replay});
  }
  [[nodiscard]] subscription<T> subscribe(subscribe_options options) {
    subscription<T> made = core_->out.subscribe(options);
    core_->left.shut();
    core_->first.open();
    return made;
  }
  std::size_t subscribers() const noexcept { return core_->out.subscribers(); }
  bool closed() const noexcept { return core_->out.closed(); }

  // Below: for the library.
  explicit shared_stream(std::shared_ptr<detail::share_core<T>> core) noexcept
      : core_(std::move(core)) {}

 private:
  std::shared_ptr<detail::share_core<T>> core_;
};

/// Turns a cold stream into a hot one: a background child of `s` pulls it and delivers each item to
/// every subscriber.
///
/// It starts with the first subscriber, or at once; it stops and closes the source when the last
/// subscriber leaves (later ones see the end), or only when the source ends. A source error reaches
/// every subscriber; it is a failure of `s` only if there were none. Subscribers that are left when
/// `s` ends get errc::stream_interrupted. The child yields like any other fiber: it does not starve
/// the loop.
template <detail::any_pipeline P>
auto share(scope& s, P&& source, share_options options = {}) {
  detail::require_share_options(options);
  using stage = detail::stage_of<P>;
  auto core = std::make_shared<detail::share_core<detail::value_of<stage>>>(options);
  (void)s.background(detail::share_pump<stage>::run(detail::share_end(core),
                                                    detail::stage_from(std::forward<P>(source))),
                     {.name = "share"});
  return shared_stream<detail::value_of<stage>>(std::move(core));
}

}  // namespace weir
