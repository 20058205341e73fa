// SPDX-License-Identifier: MIT
// io::file and read_file: modes, offsets, errors, and what is refused.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>
#include <limits>

#include "io/file_support.hpp"

using namespace weir_test;

namespace {

constexpr io::mode all_modes[] = {io::mode::read, io::mode::write, io::mode::append,
                                  io::mode::update, io::mode::create};

task<std::string> read_text(io::file& f, std::uint64_t offset, std::size_t size) {
  std::string text(size, '?');
  const std::size_t n = co_await f.read_at(offset, std::as_writable_bytes(std::span(text)));
  text.resize(n);
  co_return text;
}

task<std::exception_ptr> open_error(const std::string& path, io::mode how) {
  co_return co_await error_of(io::file::open(path, how));
}

}  // namespace

TEST(file, create_makes_a_new_file_that_can_be_written_and_read) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "new";
    io::file f = co_await io::file::open(p, io::mode::create);
    co_await f.write_at(0, "hello world");
    co_await f.write_at(6, "weird");
    co_await f.sync();
    EXPECT_EQ(co_await f.size(), 11U);
    EXPECT_EQ(co_await read_text(f, 6, 5), "weird");
    co_await f.close();
    EXPECT_EQ(content_of(p), "hello weird");
  });
}

TEST(file, create_refuses_a_file_that_exists) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "old";
    put(p, "old");
    const auto error = co_await open_error(p, io::mode::create);
    EXPECT_EQ(code_of(error), std::errc::file_exists);
    EXPECT_TRUE(contains(what_of(error), p));
    EXPECT_EQ(content_of(p), "old");
  });
}

TEST(file, write_creates_or_truncates) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    for (int i = 0; i < 2; ++i) {
      io::file f = co_await io::file::open(p, io::mode::write);
      EXPECT_EQ(co_await f.size(), 0U);
      co_await f.write_at(0, "some text");
    }
    EXPECT_EQ(content_of(p), "some text");
  });
}

TEST(file, append_creates_and_writes_at_the_end) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    for (const char* text : {"one", "two"}) {
      io::file f = co_await io::file::open(p, io::mode::append);
      co_await f.append(text);
      co_await f.append("!");
    }
    EXPECT_EQ(content_of(p), "one!two!");
  });
}

TEST(file, update_keeps_what_is_there) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    {
      io::file f = co_await io::file::open(p, io::mode::update);
      co_await f.write_at(0, "Hello");
    }
    io::file f = co_await io::file::open(p, io::mode::update);
    co_await f.write_at(0, "J");
    EXPECT_EQ(co_await read_text(f, 0, 10), "Jello");
  });
}

TEST(file, append_finds_the_end_in_every_mode_that_writes) {
  on_both([]() -> task<> {
    const temporary_directory d;
    for (const io::mode how : {io::mode::write, io::mode::append, io::mode::update}) {
      const std::string p = d / "f";
      io::file f = co_await io::file::open(p, how);
      const std::uint64_t before = co_await f.size();
      std::ofstream(p, std::ios::app) << "other";  // another program appends, too
      co_await f.append("mine");
      EXPECT_EQ(content_of(p).substr(before), "othermine");
    }
  });
}

TEST(file, a_write_beyond_the_end_leaves_zeros_before_it) {
  on_both([]() -> task<> {
    const temporary_directory d;
    io::file f = co_await io::file::open(d / "f", io::mode::create);
    co_await f.write_at(3, "x");
    EXPECT_EQ(co_await read_text(f, 0, 10), std::string("\0\0\0x", 4));
  });
}

TEST(file, bytes_and_texts_are_written_alike_and_nothing_is_nothing) {
  on_both([]() -> task<> {
    const temporary_directory d;
    io::file f = co_await io::file::open(d / "f", io::mode::create);
    const std::array<std::byte, 2> bytes{std::byte{'a'}, std::byte{'b'}};
    co_await f.write_at(0, bytes);
    co_await f.append(bytes);
    co_await f.write_at(0, "");
    co_await f.append("");
    EXPECT_EQ(co_await f.read_at(0, {}), 0U);
    EXPECT_EQ(co_await read_text(f, 0, 9), "abab");
  });
}

TEST(file, read_at_is_short_only_at_the_end) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    const std::string all(300'000, 'x');
    put(p, all);
    io::file f = co_await io::file::open(p, io::mode::read);
    EXPECT_EQ(co_await read_text(f, 0, 300'000), all);
    EXPECT_EQ((co_await read_text(f, 299'990, 100)).size(), 10U);
    EXPECT_EQ((co_await read_text(f, 300'000, 100)).size(), 0U);
    EXPECT_EQ((co_await read_text(f, 1'000'000, 100)).size(), 0U);
  });
}

TEST(file, an_offset_that_no_file_has_is_refused) {
  on_both([]() -> task<> {
    const temporary_directory d;
    io::file f = co_await io::file::open(d / "f", io::mode::create);
    constexpr std::uint64_t far = std::numeric_limits<std::int64_t>::max();
    std::array<std::byte, 4> b{};
    EXPECT_EQ(code_of(co_await error_of(f.read_at(far + 1, b))), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await error_of(f.write_at(far + 1, "x"))), errc::invalid_argument);
    EXPECT_EQ(co_await f.read_at(far, b), 0U);
    const auto too_big = co_await error_of(f.write_at(far, "xy"));
    EXPECT_EQ(code_of(too_big).category(), std::system_category());
    EXPECT_EQ(co_await f.size(), 0U);
  });
}

TEST(file, what_the_system_refuses_has_its_code_and_the_path) {
  on_both([]() -> task<> {
    const temporary_directory d;
    put(d / "plain", "x");
    const auto check = [](const std::exception_ptr& error, std::errc code, const std::string& p) {
      EXPECT_EQ(code_of(error), code);
      EXPECT_TRUE(contains(what_of(error), "'" + p + "'")) << what_of(error);
    };
    const std::string missing = d / "missing";
    check(co_await open_error(missing, io::mode::read), std::errc::no_such_file_or_directory,
          missing);
    const std::string below = d / "plain/below";
    check(co_await open_error(below, io::mode::write), std::errc::not_a_directory, below);
    const std::string nowhere = d / "no/f";
    check(co_await open_error(nowhere, io::mode::create), std::errc::no_such_file_or_directory,
          nowhere);
    check(co_await error_of(io::read_file(missing)), std::errc::no_such_file_or_directory, missing);
    check(co_await open_error("", io::mode::read), std::errc::no_such_file_or_directory, "");
  });
}

TEST(file, a_directory_is_refused_in_every_mode) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p(d.path());
    for (const io::mode how : {io::mode::read, io::mode::write, io::mode::append, io::mode::update})
      EXPECT_EQ(code_of(co_await open_error(p, how)), std::errc::is_a_directory);
    EXPECT_EQ(code_of(co_await error_of(io::read_file(p))), std::errc::is_a_directory);
    EXPECT_TRUE(descriptors_of(p).empty());
  });
}

TEST(file, a_pipe_or_socket_is_refused_at_once_and_blocks_no_thread) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string pipe = d / "pipe";
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::string socket = d / "socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof address.sun_path - 1);
    const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    for (const io::mode how : {io::mode::read, io::mode::write, io::mode::append, io::mode::update})
      for (const std::string& p : {pipe, socket}) {
        const auto error = co_await open_error(p, how);
        EXPECT_EQ(code_of(error), errc::invalid_argument) << what_of(error);
        EXPECT_TRUE(contains(what_of(error), p));
      }
    EXPECT_EQ(code_of(co_await error_of(io::read_file(pipe))), errc::invalid_argument);
    ::close(listening);
  });
}

TEST(file, a_path_that_the_system_would_cut_off_is_refused) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = (d / "f") + std::string("\0tail", 5);
    for (const io::mode how : all_modes)
      EXPECT_EQ(code_of(co_await open_error(p, how)), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await error_of(io::read_file(p))), errc::invalid_argument);
    EXPECT_EQ(code_of(co_await error_of(io::write_file(p, "x"))), errc::invalid_argument);
    EXPECT_TRUE(names_in(d.path()).empty());
  });
}

TEST(file, a_mode_that_does_not_exist_is_refused) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const auto error = co_await open_error(d / "f", static_cast<io::mode>(99));
    EXPECT_EQ(code_of(error), errc::invalid_argument);
    EXPECT_TRUE(names_in(d.path()).empty());
  });
}

TEST(file, a_call_that_the_mode_does_not_allow_says_which_mode_does) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    std::array<std::byte, 4> b{};
    io::file written = co_await io::file::open(p, io::mode::write);
    const auto reading = co_await error_of(written.read_at(0, b));
    EXPECT_EQ(code_of(reading), std::errc::bad_file_descriptor);
    EXPECT_TRUE(contains(what_of(reading), p) && contains(what_of(reading), "mode::update"));
    io::file read = co_await io::file::open(p, io::mode::read);
    EXPECT_EQ(code_of(co_await error_of(read.write_at(0, "x"))), std::errc::bad_file_descriptor);
    EXPECT_EQ(code_of(co_await error_of(read.append("x"))), std::errc::bad_file_descriptor);
    io::file appended = co_await io::file::open(p, io::mode::append);
    EXPECT_EQ(code_of(co_await error_of(appended.write_at(0, "x"))), errc::invalid_argument);
    EXPECT_EQ(co_await appended.size(), 0U);
  });
}

TEST(file, after_close_every_call_is_refused_and_names_the_path) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    io::file f = co_await io::file::open(p, io::mode::update);
    std::array<std::byte, 4> b{};
    EXPECT_EQ(descriptors_of(p).size(), 1U);
    co_await f.close();
    EXPECT_TRUE(descriptors_of(p).empty());
    const auto error = co_await attempt([&] { return f.read_at(0, b); });
    EXPECT_EQ(code_of(error), errc::closed);
    EXPECT_TRUE(contains(what_of(error), p));
    EXPECT_EQ(co_await code_after([&] { return f.write_at(0, "x"); }), errc::closed);
    EXPECT_EQ(co_await code_after([&] { return f.append("x"); }), errc::closed);
    EXPECT_EQ(co_await code_after([&] { return f.sync(); }), errc::closed);
    EXPECT_EQ(co_await code_after([&] { return f.size(); }), errc::closed);
    co_await f.close();
  });
}

TEST(file, a_call_made_before_close_and_started_after_it_is_refused) {
  on_both([]() -> task<> {
    const temporary_directory d;
    io::file f = co_await io::file::open(d / "f", io::mode::update);
    auto late = f.append("x");
    co_await f.close();
    EXPECT_EQ(code_of(co_await error_of(std::move(late))), errc::closed);
    EXPECT_EQ(content_of(d / "f"), "");
  });
}

TEST(file, a_file_that_was_moved_from_is_closed) {
  on_both([]() -> task<> {
    const temporary_directory d;
    io::file f = co_await io::file::open(d / "f", io::mode::update);
    io::file g = std::move(f);
    co_await g.append("x");
    io::file none;
    EXPECT_EQ(co_await code_after([&] { return f.append("x"); }), errc::closed);  // NOLINT
    EXPECT_EQ(co_await code_after([&] { return none.size(); }), errc::closed);
    co_await none.close();
    EXPECT_EQ(content_of(d / "f"), "x");
  });
}

TEST(file, destroying_it_closes_it) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    {
      const io::file f = co_await io::file::open(p, io::mode::update);
      EXPECT_EQ(descriptors_of(p).size(), 1U);
    }
    EXPECT_TRUE(descriptors_of(p).empty());
  });
}

TEST(file, its_descriptor_is_closed_on_exec) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    const io::file f = co_await io::file::open(p, io::mode::update);
    for (const int number : descriptors_of(p)) EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0);
  });
}

TEST(file, a_new_file_gets_the_mode_that_the_umask_leaves) {
  const mode_t before = ::umask(027);
  on_both([]() -> task<> {
    const temporary_directory d;
    for (const char* name : {"a", "b", "c", "d"}) {
      const io::file f = co_await io::file::open(d / name, all_modes[name[0] - 'a' + 1]);
      EXPECT_EQ(mode_of(d / name), 0640U);
    }
  });
  ::umask(before);
}

TEST(file, calls_at_the_same_time_all_arrive) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    io::file f = co_await io::file::open(p, io::mode::update);
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (std::uint64_t i = 0; i < 40; ++i) s.spawn(f.write_at(2 * i, "ab"));
      co_return;
    });
    co_await weir::with_scope([&](weir::scope& s) -> task<> {
      for (int i = 0; i < 40; ++i) s.spawn(f.append("cd"));
      co_return;
    });
    std::string wanted;
    for (int i = 0; i < 40; ++i) wanted += "ab";
    for (int i = 0; i < 40; ++i) wanted += "cd";
    EXPECT_EQ(content_of(p), wanted);
  });
}

// ------------------------------------------------------------------ read_file

TEST(file, read_file_takes_all_up_to_the_limit) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 200'000U}) {
      put(p, std::string(size, 'c'));
      EXPECT_EQ((co_await io::read_file(p)).size(), size);
      EXPECT_EQ((co_await io::read_file(p, size)).size(), size);
      if (size == 0) continue;
      const auto error = co_await error_of(io::read_file(p, size - 1));
      EXPECT_EQ(code_of(error), errc::too_large);
      EXPECT_TRUE(contains(what_of(error), p));
    }
    EXPECT_EQ((co_await io::read_file(p, std::numeric_limits<std::size_t>::max())).size(),
              200'000U);
  });
}

TEST(file, read_file_reads_files_whose_size_the_system_does_not_know) {
  on_both([]() -> task<> {
    const std::string text = co_await io::read_file("/proc/self/status");
    EXPECT_TRUE(contains(text, "Pid:"));
    EXPECT_EQ(code_of(co_await error_of(io::read_file("/proc/self/status", 10))), errc::too_large);
    EXPECT_EQ(code_of(co_await error_of(io::read_file("/dev/zero", 10'000))), errc::too_large);
    EXPECT_EQ(co_await io::read_file("/dev/null", 0), "");
  });
}

TEST(file, paths_are_copied_before_anything_waits) {
  on_both([]() -> task<> {
    const temporary_directory d;
    std::string p = d / "f";
    auto written = io::write_file(p, std::string("text of a temporary string"));
    p.assign(p.size(), '#');
    co_await std::move(written);
    p = d / "f";
    auto read = io::read_file(p);
    p.assign(p.size(), '#');
    EXPECT_EQ(co_await std::move(read), "text of a temporary string");
  });
}
