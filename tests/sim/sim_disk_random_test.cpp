// SPDX-License-Identifier: MIT
// Random calls and crashes on a simulated disk: they agree with a simple model, and depend on
// nothing but the seed.
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/disk_support.hpp"

using namespace disk_support;

namespace {

/// A disk with one directory, as simple as it can be said.
struct model {
  struct file {
    std::string seen;
    std::string durable;
  };
  std::map<std::string, std::shared_ptr<file>> seen;
  std::map<std::string, std::shared_ptr<file>> durable;

  void crash() {
    seen = durable;
    for (auto& [name, f] : seen) f->seen = f->durable;
  }
};

/// Does one random thing to a directory of the disk and to its model.
void step(generator& random, disk& on, const std::string& directory, model& m) {
  const auto any_name = [&] { return std::string(1, static_cast<char>('a' + random.below(5))); };
  const std::string name = any_name();
  const std::string path = directory + "/" + name;
  const bool present = m.seen.contains(name);
  const std::uint64_t what = random.below(18);
  if (what < 3) {
    m.durable = m.seen;
    on.sync_directory(directory);
  } else if (what < 5 && present) {
    m.seen.erase(name);
    on.unlink(path);
  } else if (what < 7 && present) {
    const std::string to = any_name();
    on.rename(path, directory + "/" + to);
    if (to == name) return;
    m.seen[to] = m.seen[name];
    m.seen.erase(name);
  } else {
    auto file = on.open(path, open_mode::create);
    auto& f = m.seen[name];
    if (f == nullptr) f = std::make_shared<model::file>();
    if (what < 10) {
      file->sync();
      f->durable = f->seen;
    } else if (what < 12) {
      const auto size = static_cast<std::size_t>(random.below(9000));
      file->truncate(size);
      f->seen.resize(size);
    } else {
      const std::string text(random.below(6000) + 1, static_cast<char>(random.below(3)));
      const auto offset = static_cast<std::size_t>(random.below(5000));
      put(*file, text, offset);
      f->seen.resize(std::max(f->seen.size(), offset + text.size()));
      f->seen.replace(offset, text.size(), text);
    }
  }
}

void expect_same(disk& on, const std::string& directory, const model& m) {
  names expected;
  for (const auto& [name, file] : m.seen) expected.push_back(name);
  ASSERT_EQ(on.list(directory), expected);
  for (const auto& [name, file] : m.seen)
    ASSERT_TRUE(get(on, directory + "/" + name) == file->seen) << directory << "/" << name;
}

}  // namespace

TEST(sim_disk, without_faults_random_calls_and_crashes_agree_with_a_simple_model) {
  constexpr std::array<const char*, 2> directories{"first", "second"};  // one for each owner
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    generator random(seed);
    rig r;
    for (const char* directory : directories) r.disk.make_directory(directory);
    r.disk.sync_directory("/");
    std::array<model, 2> models;
    for (int i = 0; i < 300; ++i) {
      r.host.who = static_cast<std::uint32_t>(random.below(2));
      const std::uint64_t what = random.below(20);
      if (what == 0) {
        for (model& m : models) m.crash();
        r.disk.crash();
      } else if (what == 1) {
        models[r.host.who].crash();
        r.disk.crash(r.host.who);
      } else {
        step(random, r.disk, directories[r.host.who], models[r.host.who]);
      }
      for (const std::size_t which : {0u, 1u})
        expect_same(r.disk, directories[which], models[which]);
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", step " << i;
    }
    EXPECT_EQ(r.host.draws, 0);
  }
}

TEST(sim_disk, after_a_crash_every_sector_is_as_it_was_at_some_time_since_the_sync) {
  constexpr std::size_t sector = 512;
  constexpr std::size_t count = 16;
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    generator random(seed);
    rig r(seed);
    std::string now(count * sector, '\0');
    auto file = durable_file(r.disk, "f", now);
    r.disk.set({.torn = 0.5, .reorder = 0.2, .short_write = 0.5});
    std::vector<std::string> history{now};
    for (std::uint64_t left = random.below(20); left > 0; --left) {
      const auto offset = static_cast<std::size_t>(random.below(now.size()));
      std::string text(random.below(now.size() - offset) + 1, '\0');
      for (char& c : text) c = static_cast<char>(random.next());
      if (random.below(5) == 0) {
        file->sync();
        history.assign(1, now);
      }
      // One pwrite after the other, because each may persist without the next.
      for (std::size_t done = 0; done < text.size();) {
        const std::size_t n = file->pwrite(bytes(text).subspan(done), offset + done);
        now.replace(offset + done, n, text, done, n);
        history.push_back(now);
        done += n;
      }
    }
    r.disk.crash();
    const std::string found = get(r.disk, "f");
    ASSERT_EQ(found.size(), now.size());
    for (std::size_t s = 0; s < found.size(); s += sector)
      ASSERT_TRUE(std::any_of(
          history.begin(), history.end(),
          [&](const std::string& then) { return then.compare(s, sector, found, s, sector) == 0; }))
          << "seed " << seed << ", sector at " << s;
    changed += found != history.front() && found != now ? 1 : 0;
  }
  EXPECT_GT(changed, 100);  // else the faults did nothing
}

namespace {

/// What is on the disk after a seeded sequence of writes under all faults, and a crash.
std::string state_after(std::uint64_t seed) {
  rig r(seed);
  generator random(7);
  r.disk.set({.torn = 0.3, .reorder = 0.3, .short_write = 0.2, .eio = 0.1, .sync_error = 0.1});
  std::string log;
  for (int i = 0; i < 200; ++i) {
    const std::string name(1, static_cast<char>('a' + random.below(4)));
    const std::string text(random.below(3000), static_cast<char>('a' + random.below(26)));
    const std::uint64_t offset = random.below(3000);
    const std::uint64_t what = random.below(10);
    log += code_of_failure([&] {
             if (what == 0) r.disk.sync_directory("/");
             auto file = r.disk.open(name, open_mode::create);
             put(*file, text, offset);
             if (what < 3) file->sync();
           }).message();
    if (what == 9) r.disk.crash();
  }
  r.disk.crash();
  r.disk.set({});
  for (const std::string& name : r.disk.list("/")) log += name + get(r.disk, name);
  return log;
}

}  // namespace

TEST(sim_disk, the_same_seed_gives_the_same_disk) {
  std::set<std::string> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string once = state_after(seed);
    EXPECT_TRUE(once == state_after(seed));
    different.insert(once);
  }
  EXPECT_EQ(different.size(), 20u);
}
