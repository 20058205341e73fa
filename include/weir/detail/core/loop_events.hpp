// SPDX-License-Identifier: MIT
// Part of <weir/loop_events.hpp>, which includes it after the declarations it needs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <weir/cancel_reason.hpp>
#include <weir/duration.hpp>

namespace weir {

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
}  // namespace weir
