// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/cancel_reason.hpp>
#include <weir/duration.hpp>

namespace weir {

/// An event of a loop: see docs/events.md.
struct event_info {
  std::string_view name;
  std::string_view object;
  std::uint64_t number;
  time_point when;
  scope_id scope;
  std::exception_ptr error;  ///< why it happened; null if the event has no error
};

/// The same, owned.
struct event_record {
  std::string name;
  std::string object;
  std::uint64_t number;
  time_point when;
  scope_id scope;
  std::exception_ptr error;
};

struct event_log {
  std::vector<event_record> events;  ///< oldest first
  std::uint64_t dropped = 0;         ///< older events that the ring has overwritten
};

/// The last events of the current loop. Outside a fiber: errc::no_current_fiber. In a durable run,
/// outside of steps, this and `on_event`: errc::not_journaled.
event_log recent_events();

/// Selects the events of every loop of the process; see `on_event`.
struct all_loops_t {
  explicit all_loops_t() = default;
};
inline constexpr all_loops_t all_loops{};

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
  friend class event_recorder;
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

/// Called for every event of every loop, on the thread where it happens.
class process_observer {
 public:
  process_observer() = default;
  process_observer(const process_observer&) = delete;
  process_observer& operator=(const process_observer&) = delete;
  virtual ~process_observer() = default;
  virtual void on(const event_info& event) = 0;

 private:
  friend class process_watch;
  friend class process_call;
  std::atomic<std::uint32_t> calls_{0};  // running now
  std::atomic<bool> over_{false};
};

template <class F>
class process_function final : public process_observer {
 public:
  template <class G>
  explicit process_function(G&& fn) : fn_(std::forward<G>(fn)) {}
  void on(const event_info& event) override { fn_(event); }

 private:
  F fn_;
};

/// A subscription to the events of all loops.
class process_watch {
 public:
  explicit process_watch(std::shared_ptr<process_observer> observer);
  process_watch(const process_watch&) = delete;
  process_watch& operator=(const process_watch&) = delete;
  /// Waits until no other thread is inside the function.
  ~process_watch();

 private:
  std::shared_ptr<process_observer> observer_;
};

}  // namespace detail

/// Watches the events of the current loop for as long as the returned object lives. `fn(const
/// event_info&)` is called synchronously where the event happens and must not change weir's state;
/// if it throws, the error is ignored and counted (event `observer_failed`).
template <class F>
[[nodiscard]] auto on_event(F&& fn) {
  return std::make_unique<detail::event_function<std::decay_t<F>>>(std::forward<F>(fn));
}

/// Watches the events of every loop of the process, including loops that start later. `fn` is
/// called on the loop where the event happens, from several threads at once, under the same rules.
/// Threads: any, also outside loops; the returned object may be destroyed on any thread, and its
/// destructor waits for calls running on other threads.
template <class F>
[[nodiscard]] auto on_event(all_loops_t, F&& fn) {
  return std::make_unique<detail::process_watch>(
      std::make_shared<detail::process_function<std::decay_t<F>>>(std::forward<F>(fn)));
}

}  // namespace weir
