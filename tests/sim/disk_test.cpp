// SPDX-License-Identifier: MIT
// What the real and the simulated disk have in common. Each behaviour is tested on both, and random
// sequences of calls must have the same results on both.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/disk_support.hpp"

using namespace disk_support;
using std::errc;

namespace {

/// An empty directory on one kind of disk.
class place {
 public:
  virtual ~place() = default;
  virtual weir::disk& where() = 0;
  std::string root;
};

class real_place final : public place {
 public:
  real_place() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir_disk_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    root = pattern;
  }
  ~real_place() override { std::filesystem::remove_all(root); }
  weir::disk& where() override { return weir::real_disk(); }
};

class simulated_place final : public place {
 public:
  simulated_place() {
    root = "/tmp";
    rig_.disk.make_directory(root);
  }
  weir::disk& where() override { return rig_.disk; }

 private:
  rig rig_;
};

class disk_form : public testing::TestWithParam<std::string> {
 protected:
  disk_form() {
    if (GetParam() == "real") {
      place_ = std::make_unique<real_place>();
    } else {
      place_ = std::make_unique<simulated_place>();
    }
  }

  std::string at(const std::string& name) const { return place_->root + "/" + name; }
  weir::disk& d() { return place_->where(); }
  std::unique_ptr<disk_file> open(const std::string& name, open_mode mode) {
    return d().open(at(name), mode);
  }
  void write(const std::string& name, std::string_view text) {
    put(*open(name, open_mode::create_new), text);
  }
  std::string read(const std::string& name) { return get(d(), at(name)); }

 private:
  std::unique_ptr<place> place_;
};

INSTANTIATE_TEST_SUITE_P(both, disk_form, testing::Values("real", "simulated"),
                         [](const auto& form) { return form.param; });

}  // namespace

TEST_P(disk_form, reads_what_was_written) {
  auto file = open("f", open_mode::create_new);
  put(*file, "hello, disk");
  put(*file, "DISK", 7);
  EXPECT_EQ(get(*file), "hello, DISK");
  EXPECT_EQ(file->size(), 11u);
  EXPECT_EQ(file->path(), at("f"));
  EXPECT_EQ(read("f"), "hello, DISK");
}

TEST_P(disk_form, a_read_ends_where_the_file_ends) {
  auto file = open("f", open_mode::create_new);
  put(*file, "12345");
  std::array<std::byte, 10> into{};
  EXPECT_EQ(file->pread(into, 3), 2u);
  EXPECT_EQ(into[0], std::byte{'4'});
  EXPECT_EQ(file->pread(into, 5), 0u);
  EXPECT_EQ(file->pread(into, 1'000'000), 0u);
  EXPECT_EQ(weir::read_up_to(*file, into, 1), 4u);
  EXPECT_EQ(text_of([&] { weir::read_exactly(*file, into, 1); }),
            "pread '" + at("f") + "' at 1: the file ends after 4 of 10 bytes: Input/output error");
}

TEST_P(disk_form, a_gap_reads_as_zeros) {
  auto file = open("f", open_mode::create_new);
  put(*file, "end", 10'000);
  EXPECT_EQ(get(*file), std::string(10'000, '\0') + "end");
}

TEST_P(disk_form, empty_transfers_do_nothing) {
  auto file = open("f", open_mode::create_new);
  EXPECT_EQ(file->pwrite({}, 100), 0u);
  EXPECT_EQ(file->pread({}, 0), 0u);
  EXPECT_EQ(file->size(), 0u);
}

TEST_P(disk_form, offsets_beyond_the_range_are_refused) {
  auto file = open("f", open_mode::create_new);
  const auto beyond = std::numeric_limits<std::uint64_t>::max() - 5;
  std::array<std::byte, 1> one{};
  EXPECT_EQ(code_of_failure([&] { file->pread(one, beyond); }), errc::invalid_argument);
  EXPECT_EQ(code_of_failure([&] { file->pwrite(one, beyond); }), errc::invalid_argument);
  EXPECT_EQ(code_of_failure([&] { file->truncate(beyond); }), errc::invalid_argument);
  EXPECT_EQ(code_of_failure([&] { file->preallocate(beyond); }), errc::invalid_argument);
}

TEST_P(disk_form, a_mode_says_what_must_exist) {
  EXPECT_EQ(code_of_failure([&] { open("f", open_mode::read); }), errc::no_such_file_or_directory);
  EXPECT_EQ(code_of_failure([&] { open("f", open_mode::read_write); }),
            errc::no_such_file_or_directory);
  put(*open("f", open_mode::create), "kept");
  EXPECT_EQ(code_of_failure([&] { open("f", open_mode::create_new); }), errc::file_exists);
  EXPECT_EQ(get(*open("f", open_mode::create)), "kept");
  EXPECT_EQ(get(*open("f", open_mode::read_write)), "kept");
  EXPECT_EQ(code_of_failure([&] { open("none/f", open_mode::create); }),
            errc::no_such_file_or_directory);
  EXPECT_EQ(code_of_failure([&] { open("f/g", open_mode::create); }), errc::not_a_directory);
  d().make_directory(at("dir"));
  EXPECT_EQ(code_of_failure([&] { open("dir", open_mode::read); }), errc::is_a_directory);
  EXPECT_EQ(code_of_failure([&] { open("dir", open_mode::create); }), errc::is_a_directory);
  EXPECT_EQ(code_of_failure([&] { d().open("", open_mode::create); }),
            errc::no_such_file_or_directory);
}

TEST_P(disk_form, a_file_opened_for_reading_refuses_to_change) {
  write("f", "as it was");
  auto file = open("f", open_mode::read);
  EXPECT_EQ(code_of_failure([&] { put(*file, "x"); }), errc::bad_file_descriptor);
  EXPECT_EQ(code_of_failure([&] { file->truncate(1); }), errc::invalid_argument);
  EXPECT_EQ(code_of_failure([&] { file->preallocate(100); }), errc::bad_file_descriptor);
  file->sync();
  EXPECT_EQ(get(*file), "as it was");
}

TEST_P(disk_form, truncate_cuts_and_grows_by_zeros) {
  auto file = open("f", open_mode::create_new);
  put(*file, "0123456789");
  file->truncate(4);
  EXPECT_EQ(get(*file), "0123");
  file->truncate(6);  // what was cut off does not come back
  EXPECT_EQ(get(*file), std::string("0123\0\0", 6));
}

TEST_P(disk_form, preallocate_grows_and_never_shrinks) {
  auto file = open("f", open_mode::create_new);
  put(*file, "abc");
  file->preallocate(9000);
  EXPECT_EQ(get(*file), "abc" + std::string(8997, '\0'));
  file->preallocate(10);
  file->preallocate(0);
  EXPECT_EQ(file->size(), 9000u);
}

TEST_P(disk_form, rename_replaces_and_open_files_stay_what_they_were) {
  write("new", "new content");
  write("f", "old content");
  auto old = open("f", open_mode::read);
  d().rename(at("new"), at("f"));
  EXPECT_EQ(read("f"), "new content");
  EXPECT_EQ(get(*old), "old content");
  EXPECT_FALSE(d().exists(at("new")));
  d().rename(at("f"), at("f"));
  EXPECT_EQ(read("f"), "new content");
}

TEST_P(disk_form, rename_moves_directories_with_what_is_in_them) {
  d().make_directory(at("a"));
  d().make_directory(at("b"));
  write("a/f", "in a");
  d().rename(at("a"), at("c"));
  EXPECT_EQ(read("c/f"), "in a");
  d().rename(at("c"), at("b"));  // an empty directory is replaced
  EXPECT_EQ(read("b/f"), "in a");
  EXPECT_EQ(d().list(at("")), names{"b"});
}

TEST_P(disk_form, rename_refuses_what_makes_no_sense) {
  write("f", "");
  d().make_directory(at("a"));
  d().make_directory(at("b"));
  write("b/f", "");
  const auto rename = [&](const std::string& from, const std::string& to) {
    return code_of_failure([&] { d().rename(at(from), at(to)); });
  };
  EXPECT_EQ(rename("none", "f"), errc::no_such_file_or_directory);
  EXPECT_EQ(rename("f", "none/f"), errc::no_such_file_or_directory);
  EXPECT_EQ(rename("f", "a"), errc::is_a_directory);
  EXPECT_EQ(rename("a", "f"), errc::not_a_directory);
  EXPECT_EQ(rename("a", "b"), errc::directory_not_empty);
  EXPECT_EQ(rename("a", "a/a"), errc::invalid_argument);
  EXPECT_EQ(d().list(at("")), (names{"a", "b", "f"}));
  EXPECT_EQ(text_of([&] { d().rename(at("none"), at("f")); }),
            "rename '" + at("none") + "' to '" + at("f") + "': No such file or directory");
}

TEST_P(disk_form, an_unlinked_file_lives_until_it_is_closed) {
  write("f", "content");
  auto file = open("f", open_mode::read_write);
  d().unlink(at("f"));
  d().sync_directory(at(""));
  EXPECT_FALSE(d().exists(at("f")));
  put(*file, "C");
  EXPECT_EQ(get(*file), "Content");
  write("f", "another");
  EXPECT_EQ(get(*file), "Content");
  EXPECT_EQ(read("f"), "another");
}

TEST_P(disk_form, unlink_is_for_files_that_exist) {
  d().make_directory(at("a"));
  EXPECT_EQ(code_of_failure([&] { d().unlink(at("f")); }), errc::no_such_file_or_directory);
  EXPECT_EQ(code_of_failure([&] { d().unlink(at("a")); }), errc::is_a_directory);
}

TEST_P(disk_form, list_is_sorted) {
  for (const char* name : {"b", "a10", "a9", "B", "a"}) write(name, "");
  d().make_directory(at("aa"));
  write("aa/inside", "");
  EXPECT_EQ(d().list(at("")), (names{"B", "a", "a10", "a9", "aa", "b"}));
  EXPECT_EQ(d().list(at("aa")), names{"inside"});
  EXPECT_EQ(code_of_failure([&] { d().list(at("none")); }), errc::no_such_file_or_directory);
  EXPECT_EQ(code_of_failure([&] { d().list(at("a")); }), errc::not_a_directory);
}

TEST_P(disk_form, make_directory_is_content_with_one_that_exists) {
  d().make_directory(at("a"));
  write("a/f", "kept");
  d().make_directory(at("a"));
  EXPECT_EQ(read("a/f"), "kept");
  EXPECT_EQ(code_of_failure([&] { d().make_directory(at("none/a")); }),
            errc::no_such_file_or_directory);
  EXPECT_EQ(code_of_failure([&] { d().make_directory(at("a/f")); }), errc::file_exists);
}

TEST_P(disk_form, exists_is_about_files_and_directories) {
  d().make_directory(at("a"));
  write("f", "");
  EXPECT_TRUE(d().exists(at("a")));
  EXPECT_TRUE(d().exists(at("f")));
  EXPECT_FALSE(d().exists(at("none")));
  EXPECT_FALSE(d().exists(at("none/f")));
  EXPECT_FALSE(d().exists(at("f/g")));
  EXPECT_FALSE(d().exists(""));
}

TEST_P(disk_form, a_path_may_be_written_in_several_ways) {
  d().make_directory(at("a/"));
  write("a//f", "content");
  EXPECT_EQ(read("./a/../a/./f"), "content");
}

TEST_P(disk_form, a_directory_is_synced_by_its_path) {
  d().make_directory(at("a"));
  write("f", "");
  d().sync_directory(at("a"));
  d().sync_directory(at(""));
  EXPECT_EQ(code_of_failure([&] { d().sync_directory(at("none")); }),
            errc::no_such_file_or_directory);
  EXPECT_EQ(code_of_failure([&] { d().sync_directory(at("f")); }), errc::not_a_directory);
}

TEST_P(disk_form, a_path_is_locked_once) {
  auto lock = d().lock(at("lock"));
  EXPECT_EQ(lock->path(), at("lock"));
  EXPECT_EQ(code_of_failure([&] { d().lock(at("lock")); }), errc::resource_unavailable_try_again);
  EXPECT_EQ(text_of([&] { d().lock(at("lock")); }),
            "lock '" + at("lock") + "': it is held already, here or by another process: " +
                std::make_error_code(errc::resource_unavailable_try_again).message());
  auto other = d().lock(at("other"));
  // Opening and closing the file does not release it.
  open("lock", open_mode::read_write).reset();
  EXPECT_EQ(code_of_failure([&] { d().lock(at("lock")); }), errc::resource_unavailable_try_again);
  lock.reset();
  lock = d().lock(at("lock"));
  EXPECT_TRUE(d().exists(at("lock")));
}

TEST_P(disk_form, a_lock_is_for_a_file_in_a_directory_that_exists) {
  EXPECT_EQ(code_of_failure([&] { d().lock(at("none/lock")); }), errc::no_such_file_or_directory);
  d().make_directory(at("a"));
  EXPECT_EQ(code_of_failure([&] { d().lock(at("a")); }), errc::is_a_directory);
}

TEST_P(disk_form, an_error_names_the_call_and_the_path) {
  EXPECT_EQ(text_of([&] { open("f", open_mode::read); }),
            "open '" + at("f") + "': No such file or directory");
  write("f", "");
  auto file = open("f", open_mode::read);
  EXPECT_EQ(text_of([&] { put(*file, "x", 4096); }),
            "pwrite '" + at("f") + "' at 4096: Bad file descriptor");
  EXPECT_EQ(text_of([&] { file->truncate(7); }),
            "truncate '" + at("f") + "' to 7: Invalid argument");
}

// The lock belongs to the process that holds it and dies with it, however it dies.
TEST(real_disk, a_lock_ends_with_its_process) {
  real_place place;
  const std::string path = place.root + "/lock";
  std::array<int, 2> says{};
  std::array<int, 2> waits{};
  ASSERT_EQ(::pipe(says.data()), 0);
  ASSERT_EQ(::pipe(waits.data()), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto lock = weir::real_disk().lock(path);
    const char locked = 'l';
    ::close(waits[1]);
    if (::write(says[1], &locked, 1) != 1) ::_exit(1);
    // Until it is killed; or until this process is gone, so that it does not stay behind.
    char never = 0;
    ::_exit(static_cast<int>(::read(waits[0], &never, 1)));
  }
  ::close(says[1]);
  char locked = 0;
  EXPECT_EQ(::read(says[0], &locked, 1), 1);
  EXPECT_EQ(code_of_failure([&] { weir::real_disk().lock(path); }),
            errc::resource_unavailable_try_again);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int end : {says[0], waits[0], waits[1]}) ::close(end);
  EXPECT_EQ(code_of_failure([&] { weir::real_disk().lock(path); }), std::error_code());
}

namespace {

/// Makes random calls and writes down what each of them gave.
class random_calls {
 public:
  random_calls(place& where, std::uint64_t seed) : place_(where), random_(seed) {}

  names run(int calls) {
    for (int i = 0; i < calls; ++i) {
      try {
        results_.push_back(one());
      } catch (const std::system_error& e) {
        results_.push_back(std::to_string(e.code().value()));
      }
    }
    return std::move(results_);
  }

 private:
  std::string path() {
    static constexpr std::array<const char*, 9> all{"a",   "b",   "c",   "d",    "a/a",
                                                    "a/b", "b/a", "b/b", "a/a/a"};
    return place_.root + "/" + all[random_.below(all.size())];
  }

  std::string on_file(disk_file& file) {
    const std::uint64_t offset = random_.below(9000);
    switch (random_.below(6)) {
      case 0:
        file.truncate(offset);
        return "truncated";
      case 1:
        file.preallocate(offset);
        return "preallocated " + std::to_string(file.size());
      case 2:
        file.sync();
        return "synced";
      case 3:
        return get(file);
      default:
        put(file, std::string(random_.below(5000), static_cast<char>('a' + random_.below(26))),
            offset);
        return std::to_string(file.size());
    }
  }

  std::string one() {
    weir::disk& d = place_.where();
    const auto& file = files_[random_.below(files_.size())];
    switch (random_.below(12)) {
      case 0:
      case 1:
      case 2: {
        const auto mode = static_cast<open_mode>(random_.below(4));
        const std::string opened = path();
        files_[random_.below(files_.size())] = d.open(opened, mode);
        return "opened";
      }
      case 3: {
        const std::string from = path();
        d.rename(from, path());
        return "renamed";
      }
      case 4:
        d.unlink(path());
        return "unlinked";
      case 5:
        d.make_directory(path());
        return "made";
      case 6: {
        std::string listed = "listed";
        for (const std::string& name : d.list(path())) listed += " " + name;
        return listed;
      }
      case 7:
        return d.exists(path()) ? "exists" : "does not";
      case 8:
        d.sync_directory(path());
        return "synced";
      default:
        return file == nullptr ? "no file" : on_file(*file);
    }
  }

  place& place_;
  generator random_;
  std::array<std::unique_ptr<disk_file>, 4> files_;
  names results_;
};

}  // namespace

TEST(disk_forms, the_same_calls_have_the_same_results_on_both) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    real_place real;
    simulated_place simulated;
    const names expected = random_calls(real, seed).run(300);
    const names found = random_calls(simulated, seed).run(300);
    ASSERT_EQ(expected.size(), found.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(expected[i], found[i]) << "seed " << seed << ", call " << i;
  }
}
