// SPDX-License-Identifier: MIT
// Files on real threads, while the system fails, interrupts or takes its time: the calls of the
// system that files use are replaced in this program.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <thread>

#include "io/file_support.hpp"
#include "support/allocations.hpp"

using namespace weir_test;

namespace {

/// What the next calls do. Each test has a process of its own, or resets what it has set.
struct faults {
  std::atomic<int> interruptions{0};  // so many calls fail with EINTR
  std::atomic<std::size_t> most{0};   // a read or write moves at most this much, if not 0
  std::atomic<int> sync_error{0};     // of fsync of a file
  std::atomic<int> folder_error{0};   // of fsync of a folder
  std::atomic<int> write_error{0};
  std::atomic<int> rename_error{0};
  std::atomic<int> file_syncs{0};
  std::atomic<int> folder_syncs{0};
  std::atomic<std::latch*> gate{nullptr};  // read, write and fsync wait here
  std::atomic<int> at_gate{0};

  void reset() {
    interruptions = sync_error = folder_error = write_error = rename_error = 0;
    file_syncs = folder_syncs = at_gate = 0;
    most = 0;
    gate = nullptr;
  }
  bool interrupted() {
    int left = interruptions.load();
    while (left > 0)
      if (interruptions.compare_exchange_weak(left, left - 1)) {
        errno = EINTR;
        return true;
      }
    return false;
  }
  void wait_at_gate() {
    if (std::latch* const closed = gate.load()) {
      ++at_gate;
      closed->wait();
    }
  }
  std::size_t limited(std::size_t n) const {
    const std::size_t limit = most.load();
    return limit == 0 ? n : std::min(n, limit);
  }
};
faults now;

bool is_folder(int descriptor) {
  struct stat found{};
  return ::fstat(descriptor, &found) == 0 && S_ISDIR(found.st_mode);
}

int failed(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

ssize_t pread(int fd, void* into, size_t n, off_t at) {
  if (now.interrupted()) return -1;
  now.wait_at_gate();
  return ::syscall(SYS_pread64, fd, into, now.limited(n), at);
}
ssize_t pwrite(int fd, const void* from, size_t n, off_t at) {
  if (now.interrupted()) return -1;
  if (now.write_error != 0) return failed(now.write_error);
  now.wait_at_gate();
  return ::syscall(SYS_pwrite64, fd, from, now.limited(n), at);
}
int fsync(int fd) {
  if (now.interrupted()) return -1;
  const bool folder = is_folder(fd);
  ++(folder ? now.folder_syncs : now.file_syncs);
  const int error = folder ? now.folder_error : now.sync_error;
  if (error != 0) return failed(error);
  now.wait_at_gate();
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
int rename(const char* from, const char* to) noexcept {
  if (now.rename_error != 0) return failed(now.rename_error);
  return static_cast<int>(::syscall(SYS_rename, from, to));
}

}  // extern "C"

namespace {

class file_threads : public ::testing::Test {
 protected:
  void SetUp() override { now.reset(); }
  void TearDown() override { now.reset(); }
  temporary_directory d;
  std::string p = d / "f";
};

}  // namespace

TEST_F(file_threads, interrupted_and_short_calls_are_continued) {
  weir::run([&]() -> task<> {
    io::file f = co_await io::file::open(p, io::mode::update);
    now.most = 7;
    now.interruptions = 5;
    const std::string all(1000, 'x');
    co_await f.write_at(0, all);
    EXPECT_EQ(content_of(p), all);
    now.interruptions = 5;
    std::string read(2000, '?');
    EXPECT_EQ(co_await f.read_at(0, std::as_writable_bytes(std::span(read))), 1000U);
    EXPECT_EQ(read.substr(0, 1000), all);
    now.interruptions = 5;
    co_await f.sync();
    EXPECT_EQ(now.file_syncs, 1);
  });
}

TEST_F(file_threads, a_write_that_the_system_refuses_says_how_much_was_written) {
  weir::run([&]() -> task<> {
    io::file f = co_await io::file::open(p, io::mode::update);
    now.write_error = ENOSPC;
    const auto error = co_await error_of(f.write_at(0, "12345"));
    EXPECT_EQ(code_of(error), std::errc::no_space_on_device);
    EXPECT_TRUE(contains(what_of(error), p) && contains(what_of(error), "0 of 5 bytes"));
    now.sync_error = EIO;
    const auto sync = co_await error_of(f.sync());
    EXPECT_EQ(code_of(sync), std::errc::io_error);
    EXPECT_TRUE(contains(what_of(sync), p));
  });
}

TEST_F(file_threads, a_running_read_is_waited_for_and_its_buffer_is_then_left_alone) {
  put(p, "content");
  weir::run([&]() -> task<> {
    io::file f = co_await io::file::open(p, io::mode::read);
    std::latch gate(1);
    now.gate = &gate;
    std::array<std::byte, 7> b{};
    bool went_on = false;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto reader = s.spawn([&]() -> task<> {
        co_await f.read_at(0, b);
        co_await weir::yield();
        went_on = true;
      });
      co_await wait_until([] { return now.at_gate == 1; });
      reader.cancel();
      co_await weir::yield();
      EXPECT_FALSE(reader.done());  // it answers no
      gate.count_down();
      co_await weir::settle(reader);
    });
    EXPECT_EQ(text_of(b), "content");
    EXPECT_FALSE(went_on);
  });
}

TEST_F(file_threads, close_waits_for_running_calls_and_refuses_further_ones) {
  put(p, "content");
  weir::run([&]() -> task<> {
    io::file f = co_await io::file::open(p, io::mode::read);
    std::latch gate(1);
    now.gate = &gate;
    std::array<std::byte, 7> b{};
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto reader = s.spawn(f.read_at(0, b));
      co_await wait_until([] { return now.at_gate == 1; });
      auto closing = s.spawn(f.close());
      co_await weir::yield();
      EXPECT_EQ(co_await code_after([&] { return f.size(); }), errc::closed);
      EXPECT_EQ(descriptors_of(p).size(), 1U);
      gate.count_down();
      EXPECT_EQ(co_await reader, 7U);
      co_await closing;
    });
    EXPECT_TRUE(descriptors_of(p).empty());
    EXPECT_EQ(text_of(b), "content");
  });
}

TEST_F(file_threads, a_file_that_is_destroyed_during_a_call_is_closed_after_it) {
  put(p, "content");
  weir::run([&]() -> task<> {
    std::latch gate(1);
    now.gate = &gate;
    std::array<std::byte, 7> b{};
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      std::optional<weir::future<std::size_t>> reader;
      {
        io::file f = co_await io::file::open(p, io::mode::read);
        reader = s.spawn(f.read_at(0, b));
        co_await wait_until([] { return now.at_gate == 1; });
      }
      EXPECT_EQ(descriptors_of(p).size(), 1U);
      gate.count_down();
      EXPECT_EQ(co_await *reader, 7U);
    });
    co_await wait_until([&] { return descriptors_of(p).empty(); });
  });
}

TEST_F(file_threads, write_file_syncs_the_file_and_then_its_folder) {
  weir::run([&]() -> task<> {
    co_await io::write_file(p, "x");
    EXPECT_EQ(now.file_syncs, 1);
    EXPECT_EQ(now.folder_syncs, 1);
    now.folder_error = EINVAL;  // a file system that cannot
    co_await io::write_file(p, "y");
    EXPECT_EQ(content_of(p), "y");
  });
}

TEST_F(file_threads, write_file_that_fails_keeps_the_old_file_and_leaves_no_temporary) {
  put(p, "old");
  weir::run([&]() -> task<> {
    for (std::atomic<int>* fault : {&now.sync_error, &now.rename_error}) {
      *fault = EIO;
      const auto error = co_await error_of(io::write_file(p, "new"));
      EXPECT_EQ(code_of(error), std::errc::io_error);
      EXPECT_TRUE(contains(what_of(error), p));
      *fault = 0;
      EXPECT_EQ(content_of(p), "old");
      EXPECT_EQ(names_in(d.path()), std::vector<std::string>{"f"});
    }
  });
}

TEST_F(file_threads, write_file_whose_folder_cannot_be_synced_says_that_it_was_written) {
  weir::run([&]() -> task<> {
    now.folder_error = EIO;
    const auto error = co_await error_of(io::write_file(p, "new"));
    EXPECT_EQ(code_of(error), std::errc::io_error);
    EXPECT_TRUE(contains(what_of(error), "it is written"));
    EXPECT_EQ(content_of(p), "new");
    EXPECT_EQ(names_in(d.path()), std::vector<std::string>{"f"});
  });
}

TEST_F(file_threads, write_file_that_is_cancelled_while_it_runs_is_finished) {
  put(p, "old");
  weir::run([&]() -> task<> {
    std::latch gate(1);
    now.gate = &gate;
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto writer = s.spawn(io::write_file(p, "new"));
      co_await wait_until([] { return now.at_gate == 1; });
      EXPECT_EQ(names_in(d.path()).size(), 2U);
      writer.cancel();
      gate.count_down();
      co_await weir::settle(writer);
    });
    EXPECT_EQ(content_of(p), "new");
    EXPECT_EQ(names_in(d.path()), std::vector<std::string>{"f"});
  });
}

TEST_F(file_threads, calls_that_are_cancelled_before_they_have_a_thread_do_nothing) {
  weir::run([&]() -> task<> {
    std::latch gate(1);
    std::atomic<int> inside{0};
    io::file f = co_await io::file::open(d / "g", io::mode::create);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 64; ++i)
        s.spawn(weir::blocking([&] {
          ++inside;
          gate.wait();
        }));
      co_await wait_until([&] { return inside == 64; });
      auto writer = s.spawn(io::write_file(p, "new"));
      auto appender = s.spawn(f.append("x"));
      co_await weir::yield();
      writer.cancel();
      appender.cancel();
      co_await weir::settle(writer);
      co_await weir::settle(appender);
      gate.count_down();
    });
    EXPECT_EQ(co_await f.size(), 0U);
    EXPECT_EQ(names_in(d.path()), std::vector<std::string>{"g"});
  });
}

TEST_F(file_threads, a_file_is_refused_on_another_loop_while_its_own_runs) {
  weir::run([&]() -> task<> {
    io::file f = co_await io::file::open(p, io::mode::update);
    std::exception_ptr error;
    std::thread other([&] {
      weir::run([&]() -> task<> { error = co_await attempt([&] { return f.size(); }); });
    });
    other.join();
    EXPECT_EQ(code_of(error), errc::wrong_loop);
    EXPECT_TRUE(contains(what_of(error), p));
    co_await f.append("x");
  });
}

#if !WEIR_TEST_ASAN && !WEIR_TEST_TSAN
TEST_F(file_threads, a_warm_call_allocates_nothing_of_its_own) {
  put(p, "content");
  weir::run([&]() -> task<> {
    io::file f = co_await io::file::open(p, io::mode::read);
    std::array<std::byte, 7> b{};
    for (int i = 0; i < 100; ++i) co_await f.read_at(0, b);
    begin_to_count();
    for (int i = 0; i < 100; ++i) co_await f.read_at(0, b);
    EXPECT_EQ(end_count(), 0);
  });
}
#endif
