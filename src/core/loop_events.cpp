// SPDX-License-Identifier: MIT
#include <weir/loop_events.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include <weir/detail/core/run_rules.hpp>

#include "core/counters.hpp"
#include "core/event_recorder.hpp"
#include "core/fatal.hpp"
#include "core/loop.hpp"

namespace weir {

event_log recent_events() {
  detail::loop& here = detail::require_fiber("recent_events");
  detail::require_no_run("recent_events");
  return here.events().recent();
}

namespace detail {

namespace {

// Checked for every event: without process-wide observers an event costs one load.
constinit std::atomic<std::uint32_t> process_watchers{0};

}  // namespace

// ------------------------------------------------------------------ observers of all loops

namespace {

using observer_list = std::vector<std::shared_ptr<process_observer>>;

/// Replaced as a whole, so that observers are called without a lock.
struct process_observers {
  std::mutex mutex;
  std::shared_ptr<const observer_list> list = std::make_shared<observer_list>();

  std::shared_ptr<const observer_list> get() {
    const std::lock_guard lock(mutex);
    return list;
  }
  void change(std::shared_ptr<const observer_list> to) {
    list = std::move(to);
    process_watchers.store(static_cast<std::uint32_t>(list->size()), std::memory_order_relaxed);
  }
};

process_observers& watching_all() {
  static process_observers* const instance = new process_observers;  // threads may outlive main
  return *instance;
}

}  // namespace

/// A running call of an observer, on this thread's stack.
class process_call {
 public:
  // Either the end of the watch sees the call, or the call sees the end of the watch: all four
  // accesses are sequentially consistent.
  explicit process_call(process_observer& o) noexcept : of_(o), outer_(innermost) {
    of_.calls_.fetch_add(1);
    innermost = this;
  }
  process_call(const process_call&) = delete;
  process_call& operator=(const process_call&) = delete;
  ~process_call() {
    innermost = outer_;
    of_.calls_.fetch_sub(1);
  }
  bool allowed() const noexcept { return !of_.over_.load(); }
  /// The running calls of `o` on this thread.
  static std::uint32_t around_here(const process_observer& o) noexcept {
    std::uint32_t found = 0;
    for (const process_call* c = innermost; c != nullptr; c = c->outer_) found += &c->of_ == &o;
    return found;
  }

 private:
  static thread_local const process_call* innermost;
  process_observer& of_;
  const process_call* outer_;
};

thread_local const process_call* process_call::innermost = nullptr;

process_watch::process_watch(std::shared_ptr<process_observer> observer)
    : observer_(std::move(observer)) {
  require_no_run("on_event");
  process_observers& all = watching_all();
  const std::lock_guard lock(all.mutex);
  auto longer = std::make_shared<observer_list>(*all.list);
  longer->push_back(observer_);
  all.change(std::move(longer));
}

process_watch::~process_watch() {
  process_observers& all = watching_all();
  {
    const std::lock_guard lock(all.mutex);
    auto shorter = std::make_shared<observer_list>(*all.list);
    std::erase(*shorter, observer_);
    all.change(std::move(shorter));
  }
  observer_->over_.store(true);
  const std::uint32_t own = process_call::around_here(*observer_);
  while (observer_->calls_.load() > own) std::this_thread::yield();
}

namespace {

template <class Failed>
void notify_process(const event_info& info, Failed failed) noexcept {
  const std::shared_ptr<const observer_list> list = watching_all().get();
  for (const auto& observer : *list) {
    const process_call call(*observer);
    try {
      if (call.allowed()) observer->on(info);
    } catch (...) {
      failed();
    }
  }
}

}  // namespace

// ------------------------------------------------------------------ events of one loop

// Each thread keeps the storage of its last loop: simulations create thousands of loops.
std::unique_ptr<event_recorder::storage>& event_recorder::spare() noexcept {
  static thread_local std::unique_ptr<storage> kept;
  return kept;
}

event_recorder::event_recorder() : cells_(std::move(spare())) {
  counters::prepare();
  if (cells_ == nullptr) cells_ = std::make_unique_for_overwrite<storage>();
}

event_recorder::~event_recorder() { spare() = std::move(cells_); }

void event_recorder::emit(time_point when, std::string_view name, std::string_view object,
                          std::uint64_t number, scope_id scope, const std::exception_ptr& error,
                          bool keep_error) noexcept {
  event_info info{name, object, number, when, scope, keep_error ? error : nullptr};
  keep(info);
  info.error = error;
  const auto failed = [&] {
    keep({"observer_failed", name, ++failed_observers_, when, scope, std::current_exception()});
  };
  for (event_observer* o = observers_; o != nullptr;) {
    event_observer* following = o->next_;
    try {
      o->on(info);
    } catch (...) {
      failed();
    }
    o = following;
  }
  if (process_watchers.load(std::memory_order_relaxed) > 0) notify_process(info, failed);
}

void event_recorder::keep(const event_info& e) noexcept {
  counters::count(e.object, e.name);
  if (e.name == "cancel") counters::count_cancel(static_cast<cancel_kind>(e.number));
  const std::size_t at = emitted_++ % capacity;
  cell& c = (*cells_)[at];
  c.name = e.name.data();  // event names are literals
  c.name_size = e.name.size();
  c.object_size = std::min(e.object.size(), c.object.size());
  if (c.object_size != 0) std::memcpy(c.object.data(), e.object.data(), c.object_size);
  c.number = e.number;
  c.when_ns = e.when.time_since_epoch().count();
  c.scope = e.scope;
  if (e.error != nullptr || !errors_.empty()) keep_error(e.error, at);
}

void event_recorder::keep_error(const std::exception_ptr& error, std::size_t at) noexcept {
  try {
    if (errors_.empty()) errors_.resize(capacity);
    if (errors_[at] != nullptr) old_errors_.push_back(errors_[at]);
    errors_[at] = error;
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory: the event is kept without its error.
  }
}

void event_recorder::add(event_observer& observer) noexcept {
  event_observer** at = &observers_;
  while (*at != nullptr) at = &(*at)->next_;  // called in order of subscription
  *at = &observer;
  observer.at_ = at;
}

void event_recorder::remove(event_observer& observer) noexcept {
  *observer.at_ = observer.next_;
  if (observer.next_ != nullptr) observer.next_->at_ = observer.at_;
  observer.at_ = nullptr;
  observer.next_ = nullptr;
}

event_log event_recorder::recent() const {
  event_log log;
  const std::uint64_t kept = std::min<std::uint64_t>(emitted_, capacity);
  log.dropped = emitted_ - kept;
  log.events.reserve(kept);
  for (std::uint64_t i = emitted_ - kept; i < emitted_; ++i) {
    const cell& c = (*cells_)[i % capacity];
    log.events.push_back({std::string(c.name, c.name_size),
                          std::string(c.object.data(), c.object_size), c.number,
                          time_point(duration(c.when_ns)), c.scope,
                          errors_.empty() ? nullptr : errors_[i % capacity]});
  }
  return log;
}

void event_observer::attach() {
  loop& here = require_fiber("on_event");
  require_no_run("on_event");
  home_ = here.serial();
  here.events().add(*this);
}

void event_observer::detach() noexcept {
  loop* here = loop::here();
  if (here != nullptr && here->serial() == home_) return here->events().remove(*this);
  // If the loop has ended, there is no recorder to leave.
  if (door_table::find_serial(home_) != nullptr)
    fatal("the subscription of on_event destroyed on another thread while its loop runs");
}

}  // namespace detail
}  // namespace weir
