// SPDX-License-Identifier: MIT
#include "core/fork_watch.hpp"

#include <pthread.h>

#include <mutex>

namespace weir::detail {

namespace {

unsigned forks = 0;  // written only in a new child, which has one thread

}  // namespace

/// All that are watched. The mutex is held across `fork`, so the child finds the list in order.
struct fork_list {
  std::mutex mutex;
  fork_watch* first = nullptr;

  static fork_list& all() {
    static fork_list* const instance = [] {  // never destroyed: threads may outlive main
      auto* made = new fork_list;
      ::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                       [] {
                         all().in_child();
                         all().mutex.unlock();
                       });
      return made;
    }();
    return *instance;
  }

  void add(fork_watch& w) {
    const std::lock_guard lock(mutex);
    w.next_ = first;
    if (first != nullptr) first->previous_ = &w;
    first = &w;
  }
  void remove(fork_watch& w) {
    const std::lock_guard lock(mutex);
    (w.previous_ == nullptr ? first : w.previous_->next_) = w.next_;
    if (w.next_ != nullptr) w.next_->previous_ = w.previous_;
  }
  void in_child() noexcept {
    ++forks;
    for (fork_watch* w = first; w != nullptr; w = w->next_) w->in_child();
  }
};

void fork_watch::watch() { fork_list::all().add(*this); }
void fork_watch::unwatch() noexcept { fork_list::all().remove(*this); }

unsigned process_mark::generation() noexcept {
  (void)fork_list::all();  // so that forks are counted from now on
  return forks;
}

}  // namespace weir::detail
