// SPDX-License-Identifier: MIT
#include "core/fork_watch.hpp"

#include <pthread.h>

#include <memory>
#include <mutex>
#include <system_error>

namespace weir::detail {

namespace {

unsigned forks = 0;  // written only in a new child, which has one thread

}  // namespace

/// All watched objects. The mutex is held across `fork`, so the child finds a consistent list.
struct fork_list {
  std::mutex mutex;
  fork_watch* first = nullptr;

  static fork_list& all() {
    static fork_list* const instance = make();  // never destroyed: threads may outlive main
    return *instance;
  }

  void add(fork_watch& w) noexcept {
    w.next_ = first;
    if (first != nullptr) first->previous_ = &w;
    first = &w;
  }
  void remove(fork_watch& w) noexcept {
    (w.previous_ == nullptr ? first : w.previous_->next_) = w.next_;
    if (w.next_ != nullptr) w.next_->previous_ = w.previous_;
  }
  void in_child() noexcept {
    ++forks;
    for (fork_watch* w = first; w != nullptr; w = w->next_) w->in_child();
  }

 private:
  static fork_list* make() {
    auto made = std::make_unique<fork_list>();
    const int error = ::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                                       [] {
                                         all().in_child();
                                         all().mutex.unlock();
                                       });
    if (error != 0) throw std::system_error(error, std::generic_category(), "weir: pthread_atfork");
    return made.release();
  }
};

no_forks::no_forks() { fork_list::all().mutex.lock(); }
no_forks::~no_forks() { fork_list::all().mutex.unlock(); }

void fork_watch::watch(const no_forks&) noexcept { fork_list::all().add(*this); }
void fork_watch::unwatch(const no_forks&) noexcept { fork_list::all().remove(*this); }

// Forks are counted from the first call of fork_list::all().
process_mark::process_mark() : generation_((fork_list::all(), forks)) {}
bool process_mark::is_here() const noexcept { return generation_ == forks; }

}  // namespace weir::detail
