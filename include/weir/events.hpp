// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/cancel_reason.hpp>
#include <weir/duration.hpp>

namespace weir {

/// Something that happened in a loop and that nobody had to ask for: see docs/events.md.
struct event_info {
  std::string_view name;
  std::string_view object;
  std::uint64_t number;
  time_point when;
  scope_id scope;
};

/// The same, owned.
struct event_record {
  std::string name;
  std::string object;
  std::uint64_t number;
  time_point when;
  scope_id scope;
};

struct event_log {
  std::vector<event_record> events;  ///< oldest first
  std::uint64_t dropped = 0;         ///< older ones that the ring has forgotten
};

/// The last events of the current loop. Outside a fiber: errc::no_current_fiber. In a durable run,
/// outside of steps, this and `on_event`: errc::not_journaled.
event_log recent_events();

namespace detail {

/// Called for every event of one loop.
class event_observer {
 public:
  event_observer() = default;
  event_observer(const event_observer&) = delete;
  event_observer& operator=(const event_observer&) = delete;
  virtual void on(const event_info& event) = 0;

 protected:
  ~event_observer() = default;
  void attach();
  void detach() noexcept;

 private:
  friend class event_ring;
  event_observer* next_ = nullptr;
  event_observer** at_ = nullptr;
  std::uint32_t home_ = 0;
};

template <class F>
class event_function final : public event_observer {
 public:
  template <class G>
  explicit event_function(G&& fn) : fn_(std::forward<G>(fn)) {
    attach();
  }
  ~event_function() { detach(); }
  void on(const event_info& event) override { fn_(event); }

 private:
  F fn_;
};

}  // namespace detail

/// Watches the events of the current loop for as long as the returned object lives.
/// `fn(const event_info&)` is called at once, where the event happens: it must not change weir's
/// state; if it throws, the error is ignored and counted (event `observer_failed`).
template <class F>
[[nodiscard]] auto on_event(F&& fn) {
  return std::make_unique<detail::event_function<std::decay_t<F>>>(std::forward<F>(fn));
}

}  // namespace weir
