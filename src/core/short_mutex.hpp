// SPDX-License-Identifier: MIT
// A mutex for critical sections of a few instructions, in which nothing is allocated, no user code
// runs and no thread is woken: a thread that finds it locked polls shortly before it sleeps,
// because the owner will have left it by then. For std::lock_guard and std::unique_lock.
#pragma once

#include <pthread.h>

namespace weir::detail {

class short_mutex {
 public:
  constexpr short_mutex() noexcept = default;
  short_mutex(const short_mutex&) = delete;
  short_mutex& operator=(const short_mutex&) = delete;
  ~short_mutex() { pthread_mutex_destroy(&mutex_); }

  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  bool try_lock() noexcept { return pthread_mutex_trylock(&mutex_) == 0; }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

 private:
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
  pthread_mutex_t mutex_ = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
#else
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

}  // namespace weir::detail
