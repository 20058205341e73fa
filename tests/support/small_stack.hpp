// SPDX-License-Identifier: MIT
// A thread with a small stack: what runs on it must not recurse with the depth of its data.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "support/sanitizers.hpp"
#include "support/test_support.hpp"

namespace test_support {

inline constexpr std::size_t small_stack_bytes = (sanitized ? 1024 : 256) * std::size_t{1024};

/// Runs `f` to its end on a thread with a small stack.
template <class F>
void on_a_small_stack(F f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, small_stack_bytes), 0);
  auto entry = [](void* argument) -> void* {
    auto error = thrown_by(*static_cast<F*>(argument));
    EXPECT_TRUE(error == nullptr) << what_of(error);
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, &f), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
}

}  // namespace test_support
