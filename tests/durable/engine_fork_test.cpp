// SPDX-License-Identifier: MIT
// Children that a process forks while an engine is open. Promises: "One process owns a journal"; a
// child has neither the lock nor the engine, does not write, and gets an error.
#include "durable/support/stage.hpp"
#include "support/disk_support.hpp"

using namespace durable_test;
using durable::run_state;

namespace {

/// All files of the journal, with their contents.
std::string content(const stage& on) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(on.journal())) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    all.append(entry.path().string()).append(std::istreambuf_iterator<char>(in), {});
  }
  return all;
}

task<int> result_of_run(durable::engine& e, std::string id) {
  auto run = co_await e.start<int>("h", {.id = id}, 21);
  co_return co_await run.result();
}

/// An engine with its thread, in a process of its own.
void real_session_of_twice(const stage& on, user use) {
  whole_life([&] { weir::run(with_open_engine(options_for(on), as_h(twice), use)); });
}

/// A child of the process that has the engine; its status.
template <class F>
task<int> exit_code_of_child(F f) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    int code = 99;
    try {
      code = co_await f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "in a child: %s\n", e.what());
    }
    ::_exit(code);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) co_return -1;
  co_return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

template <class Call>
task<int> says_child(Call call) {
  const auto error = co_await test_support::attempt(call);
  const bool clear = test_support::code_of(error) == errc::wrong_loop &&
                     test_support::contains(test_support::what_of(error), "this is a forked child");
  if (!clear) std::fprintf(stderr, "%s\n", test_support::what_of(error).c_str());
  co_return clear ? 0 : 1;
}

}  // namespace

TEST(durable_fork, a_child_that_uses_the_engine_is_told_so_and_writes_nothing) {
  const stage on;
  real_session_of_twice(on, [&](durable::engine& e) -> task<> {
    EXPECT_EQ(co_await result_of_run(e, "before"), 42);
    const std::string before = content(on);
    auto child = [&]() -> task<int> {
      int wrong = co_await says_child([&] { return result_of_run(e, "in the child"); });
      wrong += co_await says_child([&] { return e.signal("before", "x", 1); });
      wrong += co_await says_child([&]() -> task<> {
        (void)e.get("before");
        co_return;
      });
      wrong += co_await says_child([&]() -> task<> {
        (void)e.cancel("before");
        co_return;
      });
      co_return wrong;
    };
    EXPECT_EQ(co_await exit_code_of_child(child), 0);
    EXPECT_TRUE(content(on) == before);
    EXPECT_EQ(co_await result_of_run(e, "after"), 42);
  });
  session(on, as_h(twice), [](durable::engine& e) -> task<> {
    EXPECT_EQ(e.list({}).size(), 2u);
    co_return;
  });
}

TEST(durable_fork, a_child_cannot_open_the_journal_while_its_parent_has_it) {
  const stage on;
  real_session_of_twice(on, [&](durable::engine&) -> task<> {
    auto child = [&]() -> task<int> {
      auto opens = [&] {
        return with_open_engine(options_for(on), as_h(twice),
                                [](durable::engine&) -> task<> { co_return; });
      };
      const auto error = co_await test_support::attempt(opens);
      co_return test_support::code_of(error) == errc::journal_locked ? 0 : 1;
    };
    EXPECT_EQ(co_await exit_code_of_child(child), 0);
    co_return;
  });
}

// Whatever the child lets go of: nothing of it reaches the disk, and the parent keeps its lock.
TEST(durable_fork, a_child_that_returns_through_the_engine_ends_and_writes_nothing) {
  const stage on;
  whole_life([&] {
    bool in_child = false;
    std::string before;
    int status = -1;
    auto use = [&](durable::engine& e) -> task<> {
      EXPECT_EQ(co_await result_of_run(e, "before"), 42);
      before = content(on);
      std::fflush(nullptr);
      const pid_t child = ::fork();
      in_child = child == 0;
      if (in_child) co_return;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(content(on) == before);
      const auto second = co_await test_support::attempt([&] {
        return with_open_engine(options_for(on), as_h(twice),
                                [](durable::engine&) -> task<> { co_return; });
      });
      EXPECT_EQ(test_support::code_of(second), errc::journal_locked);
      EXPECT_EQ(co_await result_of_run(e, "after"), 42);
    };
    weir::run(with_open_engine(options_for(on), as_h(twice), use));
    if (in_child) ::_exit(0);
    EXPECT_EQ(status, 0);
  });
}

TEST(durable_fork, a_child_that_outlives_its_parent_does_not_keep_the_lock) {
  const stage on;
  int alive[2];
  int runs[2];
  ASSERT_EQ(::pipe2(alive, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(runs, O_CLOEXEC), 0);
  EXPECT_EQ(
      life([&] {
        weir::run(with_open_engine(options_for(on), as_h(twice), [&](durable::engine& e) -> task<> {
          EXPECT_EQ(co_await result_of_run(e, "before"), 42);
          char none = 0;
          if (::fork() == 0) {  // lives until the test says so
            ::close(alive[1]);
            (void)!::write(runs[1], &none, 1);
            (void)!::read(alive[0], &none, 1);
            ::_exit(0);
          }
          // Before its first instruction the child is a copy of the parent, lock and all.
          (void)!::read(runs[0], &none, 1);
          ::_exit(crashed);
        }));
      }),
      crashed);
  session(on, as_h(twice), [](durable::engine& e) -> task<> {
    EXPECT_EQ(e.get("before")->state, run_state::completed);
    EXPECT_EQ(co_await result_of_run(e, "after"), 42);
  });
  for (const int end : {alive[0], alive[1], runs[0], runs[1]}) ::close(end);
}

TEST(durable_fork, the_lock_of_a_disk_is_not_inherited) {
  const stage on;
  std::filesystem::create_directory(on.journal());
  const std::string path = on.journal() + "/LOCK";
  const auto lock = weir::real_disk().lock(path);
  whole_life([&] {
    EXPECT_THROW((void)weir::real_disk().lock(path), std::system_error);  // the parent has it
  });
  EXPECT_THROW((void)weir::real_disk().lock(path), std::system_error);  // and keeps it
}
