// SPDX-License-Identifier: MIT
// What a forked child shares with its parent, and what it must not. Promise: a child does not steal
// wake-ups.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include <gtest/gtest.h>

#include "core/bell.hpp"
#include "core/fork_watch.hpp"

using weir::detail::bell;
using weir::detail::fork_watch;
using weir::detail::process_mark;

namespace {

/// The status of a child that gives the result of `f`.
int in_child(const std::function<int()>& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

class counted_watch final : public fork_watch {
 public:
  counted_watch() { watch(weir::detail::no_forks()); }
  counted_watch(const counted_watch&) = delete;
  counted_watch& operator=(const counted_watch&) = delete;
  ~counted_watch() { unwatch(weir::detail::no_forks()); }
  void in_child() noexcept override { ++given_up; }
  int given_up = 0;
};

}  // namespace

TEST(fork, a_child_neither_takes_nor_rings_the_bell_of_its_parent) {
  bell b;
  b.ring();
  EXPECT_EQ(in_child([&] {
              (void)b.heard();
              return b.sleep(1) == bell::slept::timed_out ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(b.heard());
  EXPECT_EQ(in_child([&] {
              b.ring();
              return b.heard() ? 0 : 1;  // its own
            }),
            0);
  EXPECT_FALSE(b.heard());
}

TEST(fork, everything_that_is_watched_is_given_up_once_and_only_in_the_child) {
  counted_watch first;
  counted_watch second;
  {
    const counted_watch gone;
  }
  const counted_watch third;
  EXPECT_EQ(in_child([&] { return first.given_up + 4 * second.given_up + 16 * third.given_up; }),
            1 + 4 + 16);
  EXPECT_EQ(first.given_up, 0);
}

TEST(fork, a_process_knows_that_it_was_forked_off) {
  const process_mark here;
  EXPECT_EQ(in_child([&] {
              const process_mark there;
              if (here.is_here() || !there.is_here()) return 1;
              return in_child([&] { return there.is_here() || here.is_here() ? 2 : 0; });
            }),
            0);
  EXPECT_TRUE(here.is_here());
}
