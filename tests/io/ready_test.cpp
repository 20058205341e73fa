// SPDX-License-Identifier: MIT
// readable and writable: descriptors of other libraries.
#include "io_support.hpp"

using namespace weir_test;

namespace {

struct pipe_ends {
  pipe_ends() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  void end() { ::close(std::exchange(ends[1], -1)); }
  void write(std::string_view text) const {
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int ends[2] = {-1, -1};
};

}  // namespace

TEST(ready, readable_waits_for_bytes_and_for_the_end) {
  auto program = []() -> task<> {
    pipe_ends p;
    EXPECT_TRUE(holds<weir::timeout_error>(
        co_await error_of(weir::with_timeout(1ms, weir::readable(p.ends[0])))));
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto wait = [&]() -> task<> { co_await weir::readable(p.ends[0]); };
      auto waiting = s.spawn(wait);
      co_await weir::yield();
      p.write("x");
      co_await waiting;
      char c = 0;
      EXPECT_EQ(::read(p.ends[0], &c, 1), 1);
      auto again = s.spawn(wait);
      co_await weir::yield();
      EXPECT_FALSE(again.done());
      p.end();
      co_await again;
    });
  };
  weir::run(program);
}

TEST(ready, what_is_ready_is_not_waited_for) {
  auto program = []() -> task<> {
    pipe_ends p;
    p.write("x");
    co_await weir::readable(p.ends[0]);
    co_await weir::readable(p.ends[0]);  // nothing was taken
    co_await weir::writable(p.ends[1]);
  };
  weir::run(program);
}

TEST(ready, writable_waits_for_room) {
  auto program = []() -> task<> {
    pipe_ends p;
    const std::string page(4096, 'x');
    while (::write(p.ends[1], page.data(), page.size()) > 0) {
    }
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto wait = [&]() -> task<> { co_await weir::writable(p.ends[1]); };
      auto waiting = s.spawn(wait);
      co_await weir::yield();
      EXPECT_FALSE(waiting.done());
      std::string sink(65536, '\0');
      EXPECT_GT(::read(p.ends[0], sink.data(), sink.size()), 0);
      co_await waiting;
    });
  };
  weir::run(program);
}

TEST(ready, a_reader_and_a_writer_may_wait_for_one_descriptor_but_no_second_reader) {
  auto program = []() -> task<> {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    const std::string page(4096, 'x');
    while (::write(ends[0], page.data(), page.size()) > 0) {
    }
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      auto wait_read = [&]() -> task<> { co_await weir::readable(ends[0]); };
      auto wait_write = [&]() -> task<> { co_await weir::writable(ends[0]); };
      auto reader = s.spawn(wait_read);
      auto writer = s.spawn(wait_write);
      co_await weir::yield();
      EXPECT_EQ(code_of(co_await attempt([&] { return weir::readable(ends[0]); })), errc::busy);
      std::string sink(1 << 20, '\0');
      EXPECT_GT(::read(ends[1], sink.data(), sink.size()), 0);
      co_await writer;
      EXPECT_FALSE(reader.done());
      EXPECT_EQ(::write(ends[1], "y", 1), 1);
      co_await reader;
    });
    ::close(ends[0]);
    ::close(ends[1]);
  };
  weir::run(program);
}

TEST(ready, plain_files_and_closed_descriptors_are_refused) {
  scratch_folder folder;
  auto program = [&]() -> task<> {
    const int file = ::open((folder / "f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    EXPECT_EQ(code_of(co_await attempt([&] { return weir::readable(file); })),
              errc::invalid_argument);
    ::close(file);
    EXPECT_EQ(code_of(co_await attempt([&] { return weir::readable(file); })),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of(co_await attempt([&] { return weir::writable(-1); })),
              std::errc::bad_file_descriptor);
  };
  weir::run(program);
}

TEST(ready, the_number_of_a_closed_descriptor_may_be_used_again) {
  auto program = []() -> task<> {
    for (int round = 0; round < 3; ++round) {
      pipe_ends p;
      co_await weir::settle(weir::with_timeout(1ms, weir::readable(p.ends[0])));
      p.write("x");
      co_await weir::readable(p.ends[0]);
    }
  };
  weir::run(program);
}

TEST(ready, in_a_simulation_it_is_refused) {
  auto program = []() -> task<> {
    EXPECT_EQ(code_of(co_await attempt([] { return weir::readable(0); })), errc::invalid_argument);
  };
  weir::sim::run({}, program);
}
