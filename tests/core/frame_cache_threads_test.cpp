// SPDX-License-Identifier: MIT
// Frames that are allocated on one thread and freed on another come back: over many rounds the
// memory does not grow, and no block has two owners.
#include <weir/detail/core/frame.hpp>

#include <barrier>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/sanitizers.hpp"

#define SKIP_WITHOUT_A_CACHE() \
  if (test_support::sanitized) \
  GTEST_SKIP() << "under a sanitizer each frame is an allocation of its own"

using weir::detail::allocate_frame;
using weir::detail::deallocate_frame;

namespace {

constexpr std::size_t frame_bytes = 272;
constexpr int rounds = 300;

using frames = std::vector<void*>;

frames allocate(std::size_t count, std::size_t bytes = frame_bytes) {
  frames made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(allocate_frame(bytes));
    std::memset(made.back(), static_cast<int>(i % 251), bytes);
  }
  return made;
}

/// Frees them, after a look at whether anybody else wrote into them.
void deallocate(frames& all, std::size_t bytes = frame_bytes) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* first = static_cast<const unsigned char*>(all[i]);
    EXPECT_EQ(first[0], i % 251);
    EXPECT_EQ(first[bytes - 1], i % 251);
    deallocate_frame(all[i], bytes);
  }
  all.clear();
}

class addresses {
 public:
  void add(const frames& made) { seen_.insert(made.begin(), made.end()); }
  std::size_t distinct() const { return seen_.size(); }

 private:
  std::set<void*> seen_;
};

/// Frees its frames when its thread ends, after everything that was made later on that thread.
struct frees_at_thread_end {
  frees_at_thread_end() = default;
  frees_at_thread_end(const frees_at_thread_end&) = delete;
  frees_at_thread_end& operator=(const frees_at_thread_end&) = delete;
  ~frees_at_thread_end() { deallocate(kept); }
  frames kept;
};

}  // namespace

TEST(frame_cache, frames_are_aligned_and_separate_whatever_their_size) {
  for (std::size_t bytes : std::vector<std::size_t>{1, 16, 17, 4'095, 4'096, 4'097, 100'000}) {
    frames made = allocate(50, bytes);
    EXPECT_EQ(std::set<void*>(made.begin(), made.end()).size(), 50u);
    for (void* frame : made) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame) % 16, 0u);
    deallocate(made, bytes);
  }
}

TEST(frame_cache, frames_freed_by_another_thread_that_goes_on_come_back) {
  SKIP_WITHOUT_A_CACHE();
  constexpr std::size_t batch = 1'000;
  addresses seen;
  frames handed_over;
  std::barrier turn(2);
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      turn.arrive_and_wait();
      deallocate(handed_over);
      turn.arrive_and_wait();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    handed_over = allocate(batch);
    seen.add(handed_over);
    turn.arrive_and_wait();
    turn.arrive_and_wait();
  }
  other.join();
  EXPECT_LE(seen.distinct(), 2 * batch);  // one batch, and what both threads keep at hand
}

TEST(frame_cache, frames_freed_by_threads_that_end_come_back) {
  SKIP_WITHOUT_A_CACHE();
  constexpr std::size_t batch = 100;
  addresses seen;
  for (int i = 0; i < rounds; ++i) {
    frames made = allocate(batch);
    seen.add(made);
    std::thread([&] { deallocate(made); }).join();
  }
  EXPECT_LE(seen.distinct(), 4 * batch);
}

TEST(frame_cache, frames_allocated_by_threads_that_end_come_back) {
  SKIP_WITHOUT_A_CACHE();
  constexpr std::size_t batch = 10;
  addresses seen;
  for (int i = 0; i < rounds; ++i) {
    frames made;
    std::thread([&] { made = allocate(batch); }).join();
    seen.add(made);
    deallocate(made);
  }
  EXPECT_LE(seen.distinct(), 1'000u);  // of 3,000
}

TEST(frame_cache, frames_freed_while_a_thread_is_ending_come_back) {
  SKIP_WITHOUT_A_CACHE();
  constexpr std::size_t batch = 100;
  addresses seen;
  for (int i = 0; i < rounds; ++i) {
    frames made = allocate(batch);
    seen.add(made);
    std::thread([&] {
      static thread_local frees_at_thread_end last;
      last.kept = std::move(made);
      frames first = allocate(1);  // the thread's cache exists from here on, and ends first
      deallocate(first);
    }).join();
  }
  EXPECT_LE(seen.distinct(), 5 * batch);
}

TEST(frame_cache, frames_allocated_while_a_thread_is_ending_are_frames_as_well) {
  struct uses_frames_at_thread_end {
    ~uses_frames_at_thread_end() {
      frames late = allocate(10);
      deallocate(late);
    }
  };
  for (int i = 0; i < 10; ++i) {
    std::thread([] {
      static thread_local uses_frames_at_thread_end last;
      static_cast<void>(last);
      frames first = allocate(1);
      deallocate(first);
    }).join();
  }
}

TEST(frame_cache, of_threads_that_pass_frames_on_no_block_has_two_owners) {
  constexpr int threads = 4;
  constexpr std::size_t batch = 200;
  std::mutex mutex;
  std::vector<frames> pool;  // never empty, so that nobody frees what it has just allocated
  for (int i = 0; i < threads; ++i) pool.push_back(allocate(batch));
  std::vector<std::thread> workers;
  for (int w = 0; w < threads; ++w) {
    workers.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        frames mine = allocate(batch);
        {
          const std::lock_guard lock(mutex);
          pool.push_back(std::move(mine));
          mine = std::move(pool.front());
          pool.erase(pool.begin());
        }
        deallocate(mine);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(pool.size(), static_cast<std::size_t>(threads));
  for (frames& rest : pool) deallocate(rest);
}
