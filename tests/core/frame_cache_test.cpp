// SPDX-License-Identifier: MIT
// Frames of more than 4 KB: kept for reuse up to a bound, and returned beyond it.
#include <weir/detail/core/frame.hpp>

#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/allocations.hpp"
#include "support/sanitizers.hpp"

// Under a sanitizer each frame is an allocation of its own; there is no cache.
#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN

using weir::detail::allocate_frame;
using weir::detail::deallocate_frame;

namespace {

constexpr std::size_t kilobyte = 1024;

/// How often the heap is asked for memory while `count` frames are alive together, and then freed.
long allocations_of(std::size_t count, std::size_t bytes) {
  std::vector<void*> all(count);
  test_support::allocations = 0;
  test_support::armed = true;
  for (void*& f : all) f = allocate_frame(bytes);
  test_support::armed = false;
  for (void* f : all) deallocate_frame(f, bytes);
  return test_support::allocations;
}

/// Runs `test` on a thread of its own, whose cache is empty.
template <class Test>
void with_an_empty_cache(Test test) {
  std::thread(test).join();
}

}  // namespace

TEST(frame_cache, a_large_frame_is_used_again_for_one_of_about_its_size) {
  with_an_empty_cache([] {
    for (std::size_t bytes = 4 * kilobyte + 1; bytes <= 64 * kilobyte; bytes += 997) {
      (void)allocations_of(1, bytes);
      EXPECT_EQ(allocations_of(1, bytes), 0) << bytes;
      EXPECT_EQ(allocations_of(1, bytes), 0) << bytes;
    }
  });
}

TEST(frame_cache, a_large_frame_has_its_whole_size_and_one_owner) {
  with_an_empty_cache([] {
    std::vector<std::pair<unsigned char*, std::size_t>> all;
    for (std::size_t round = 0; round < 2; ++round) {
      for (std::size_t bytes = 4 * kilobyte; bytes <= 66 * kilobyte; bytes += 511) {
        all.emplace_back(static_cast<unsigned char*>(allocate_frame(bytes)), bytes);
        std::memset(all.back().first, static_cast<int>(all.size() % 251), bytes);
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].first[0], (i + 1) % 251);
        EXPECT_EQ(all[i].first[all[i].second - 1], (i + 1) % 251);
        deallocate_frame(all[i].first, all[i].second);
      }
      all.clear();
    }
  });
}

TEST(frame_cache, a_thread_keeps_at_most_a_megabyte_of_large_frames) {
  with_an_empty_cache([] {
    (void)allocations_of(100, 64 * kilobyte);
    EXPECT_EQ(allocations_of(100, 64 * kilobyte), 100 - 16);
  });
}

TEST(frame_cache, larger_frames_are_not_kept) {
  with_an_empty_cache([] {
    (void)allocations_of(1, 64 * kilobyte + 1);
    EXPECT_EQ(allocations_of(1, 64 * kilobyte + 1), 1);
  });
}

#endif
