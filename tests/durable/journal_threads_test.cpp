// SPDX-License-Identifier: MIT
// A writer's thread commits while the loop appends and reads.
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_support.hpp"

using namespace journal_aid;

TEST(journal, a_thread_commits_while_another_appends_and_reads) {
  std::string path = std::filesystem::temp_directory_path() / "weir_journal_XXXXXX";
  path = ::mkdtemp(path.data());
  const journal_options options{.path = path, .segment_bytes = small_segment, .sync = false};
  constexpr int rounds = 100;
  std::vector<record_place> places;
  const auto payload = [](std::size_t i) { return std::string(300, 'a') + std::to_string(i); };
  {
    opened o(options);
    const auto add = [&] {
      for (int i = 0; i < 20; ++i) places.push_back(append(o.j, payload(places.size())).place);
    };
    add();
    for (int round = 0; round < rounds; ++round) {
      auto batch = o.j.take();
      ASSERT_NE(batch, nullptr);
      auto done = std::async(std::launch::async, [&] { o.j.commit(*batch); });
      add();
      for (std::size_t i = 0; i < places.size(); i += 1 + places.size() / 50)
        EXPECT_EQ(read(o.j, places[i]), payload(i));
      EXPECT_EQ(read(o.j, places[places.size() - 30]), payload(places.size() - 30));
      done.get();
      o.j.committed(std::move(batch));
    }
    commit(o.j);
  }
  EXPECT_EQ(opened(options).seen.records.size(), places.size());
  std::filesystem::remove_all(path);
}
