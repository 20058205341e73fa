// SPDX-License-Identifier: MIT
//
// Preloaded by bench/run for the placement "two": every thread of a program stays on one of the two
// cores that the program may use, the first thread on the first one and those that it starts in
// turn on the second and the first. Where threads land is then no longer the kernel's choice.
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>

namespace {

struct two_cores {
  two_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0, found = 0; core < CPU_SETSIZE && found < 2; ++core) {
      if (CPU_ISSET(core, &allowed)) cores[found++] = core;
    }
  }
  void place(pthread_t thread) {
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(cores[threads++ % 2], &chosen);
    pthread_setaffinity_np(thread, sizeof chosen, &chosen);
  }

  int cores[2] = {0, 0};
  std::atomic<unsigned> threads{0};
};

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  using function = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<function*>(dlsym(RTLD_NEXT, "pthread_create"));
  // The first thread is placed as late as this, so that a library that asks which cores there are
  // is told of both.
  static two_cores cores;
  if (cores.threads == 0) cores.place(pthread_self());
  const int error = create(thread, attributes, start, argument);
  if (error == 0) cores.place(*thread);
  return error;
}
