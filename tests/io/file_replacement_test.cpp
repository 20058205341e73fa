// SPDX-License-Identifier: MIT
// write_file: what is replaced, what stays as it was, and what is left behind.
#include <fcntl.h>

#include "io/file_support.hpp"

using namespace weir_test;

using name_list = std::vector<std::string>;

TEST(file_replacement, creates_a_file_or_replaces_it_and_leaves_no_temporary) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    co_await io::write_file(p, "one");
    EXPECT_EQ(content_of(p), "one");
    co_await io::write_file(p, std::string(1'000'000, 'x'));
    EXPECT_EQ(content_of(p).size(), 1'000'000U);
    const std::array<std::byte, 2> bytes{std::byte{0}, std::byte{1}};
    co_await io::write_file(p, bytes);
    EXPECT_EQ(content_of(p), std::string("\0\1", 2));
    co_await io::write_file(p, "");
    EXPECT_EQ(content_of(p), "");
    EXPECT_EQ(names_in(d.path()), name_list{"f"});
  });
}

TEST(file_replacement, is_atomic_for_a_reader_that_has_the_old_file_open) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    put(p, "old");
    std::ifstream old(p);
    co_await io::write_file(p, "new and longer");
    std::string seen;
    std::getline(old, seen);
    EXPECT_EQ(seen, "old");
    EXPECT_EQ(content_of(p), "new and longer");
  });
}

TEST(file_replacement, keeps_the_mode_of_an_existing_file) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    for (const mode_t mode : {0600U, 0444U, 0751U, 0666U}) {
      put(p, "old");
      EXPECT_EQ(::chmod(p.c_str(), mode), 0);
      co_await io::write_file(p, "new");
      EXPECT_EQ(mode_of(p), mode);
      EXPECT_EQ(content_of(p), "new");
      EXPECT_EQ(::unlink(p.c_str()), 0);
    }
  });
}

TEST(file_replacement, a_new_file_gets_the_mode_that_the_umask_leaves) {
  const mode_t before = ::umask(027);
  on_both([]() -> task<> {
    const temporary_directory d;
    co_await io::write_file(d / "f", "x");
    EXPECT_EQ(mode_of(d / "f"), 0640U);
  });
  ::umask(before);
}

TEST(file_replacement, keeps_the_owner_where_the_system_allows_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give files away";
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "f";
    put(p, "old");
    EXPECT_EQ(::chown(p.c_str(), 12345, 12346), 0);
    EXPECT_EQ(::chmod(p.c_str(), 04755), 0);
    co_await io::write_file(p, "new");
    struct stat found{};
    EXPECT_EQ(::stat(p.c_str(), &found), 0);
    EXPECT_EQ(found.st_uid, 12345U);
    EXPECT_EQ(found.st_gid, 12346U);
    EXPECT_EQ(found.st_mode & 07777U, 04755U);
  });
}

TEST(file_replacement, a_symbolic_link_stays_one_and_its_target_is_replaced) {
  on_both([]() -> task<> {
    const temporary_directory d;
    std::filesystem::create_directory(d / "real");
    put(d / "real/f", "old");
    std::filesystem::create_symlink("real/f", d / "link");
    co_await io::write_file(d / "link", "new");
    EXPECT_TRUE(std::filesystem::is_symlink(d / "link"));
    EXPECT_EQ(content_of(d / "real/f"), "new");
    EXPECT_EQ(names_in(d / "real"), name_list{"f"});
  });
}

TEST(file_replacement, a_dangling_link_is_an_error_and_stays) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "link";
    std::filesystem::create_symlink("nowhere", p);
    const auto error = co_await error_of(io::write_file(p, "x"));
    EXPECT_EQ(code_of(error), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(contains(what_of(error), p));
    EXPECT_EQ(names_in(d.path()), name_list{"link"});
  });
}

TEST(file_replacement, follows_no_dangling_temporary_and_goes_around_those_of_killed_processes) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const auto temporary = [&](int n) {
      return d / (".weir-" + std::to_string(::getpid()) + "-" + std::to_string(n) + ".tmp");
    };
    for (int i = 0; i < 50; ++i) std::filesystem::create_symlink("victim", temporary(i));
    for (int i = 50; i < 100; ++i) put(temporary(i), "left behind");
    co_await io::write_file(d / "f", "x");
    EXPECT_EQ(content_of(d / "f"), "x");
    EXPECT_FALSE(std::filesystem::exists(d / "victim"));
    EXPECT_EQ(names_in(d.path()).size(), 101U);
    EXPECT_EQ(content_of(temporary(70)), "left behind");
  });
}

TEST(file_replacement, what_is_not_a_regular_file_is_refused_and_stays) {
  on_both([]() -> task<> {
    const temporary_directory d;
    std::filesystem::create_directory(d / "folder");
    EXPECT_EQ(::mkfifo((d / "pipe").c_str(), 0600), 0);
    EXPECT_EQ(code_of(co_await error_of(io::write_file(d / "folder", "x"))),
              std::errc::is_a_directory);
    const auto error = co_await error_of(io::write_file(d / "pipe", "x"));
    EXPECT_EQ(code_of(error), errc::invalid_argument);
    EXPECT_TRUE(contains(what_of(error), d / "pipe"));
    EXPECT_EQ(code_of(co_await error_of(io::write_file("/dev/null", "x"))), errc::invalid_argument);
    EXPECT_EQ(names_in(d.path()), (name_list{"folder", "pipe"}));
  });
}

TEST(file_replacement, a_folder_that_is_missing_is_an_error_with_the_path) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / "no/f";
    const auto error = co_await error_of(io::write_file(p, "x"));
    EXPECT_EQ(code_of(error), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(contains(what_of(error), p));
  });
}

TEST(file_replacement, the_longest_name_that_a_file_may_have_is_no_problem) {
  on_both([]() -> task<> {
    const temporary_directory d;
    const std::string p = d / std::string(255, 'n');
    co_await io::write_file(p, "x");
    EXPECT_EQ(content_of(p), "x");
  });
}

TEST(file_replacement, a_path_without_a_folder_is_in_the_current_one) {
  const temporary_directory d;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(d.path());
  on_both([]() -> task<> { co_await io::write_file("f", "x"); });
  EXPECT_EQ(names_in("."), name_list{"f"});
  std::filesystem::current_path(before);
}
