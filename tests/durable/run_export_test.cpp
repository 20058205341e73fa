// SPDX-License-Identifier: MIT
// The file of an exported run: it reads as it was written, and nothing else is accepted.
#include "durable/run_export.hpp"

#include <gtest/gtest.h>

#include "durable/run_record.hpp"
#include "support/test_support.hpp"

using weir::detail::command_key;
using weir::detail::command_record;
using weir::detail::exported_record;
using weir::detail::exported_run;
using weir::detail::journal_secret;
using weir::detail::payload_writer;
using weir::detail::read_export;
using weir::detail::write_export;

namespace {

template <class F>
std::error_code code_thrown_by(F f) {
  return test_support::code_of(test_support::thrown_by(f));
}

std::vector<exported_record> small_run() {
  std::vector<exported_record> all;
  all.push_back({{.type = 1, .flags = 0, .run = 9, .fiber = 0, .index = 0}, "the start"});
  payload_writer made;
  command_record{"a", 0, 0}.write(made);
  all.push_back(
      {{.type = 4, .flags = 7, .run = 9, .fiber = 1, .index = 1}, std::string(made.view().bytes)});
  all.push_back({{.type = 9, .flags = 1, .run = 9, .fiber = 1, .index = 1}, std::string(300, 'x')});
  return all;
}

}  // namespace

TEST(durable_run_export, reads_as_it_was_written) {
  const auto records = small_run();
  const std::string bytes = write_export(records, journal_secret{});
  const exported_run read = read_export(bytes, "f");
  ASSERT_EQ(read.records.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(read.records[i].payload, records[i].payload);
    EXPECT_EQ(read.records[i].head.type, records[i].head.type);
    EXPECT_EQ(read.records[i].head.flags, records[i].head.flags);
    EXPECT_EQ(read.records[i].head.run, records[i].head.run);
    EXPECT_EQ(read.records[i].head.fiber, records[i].head.fiber);
    EXPECT_EQ(read.records[i].head.index, records[i].head.index);
  }
  EXPECT_EQ(read.awakeables.size(), 1u);
  EXPECT_FALSE(read.awakeables.at(command_key(1, 1)).empty());
}

TEST(durable_run_export, that_is_damaged_or_cut_is_refused) {
  const std::string bytes = write_export(small_run(), journal_secret{});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 4);
    EXPECT_EQ(code_thrown_by([&] { return read_export(flipped, "f"); }), weir::errc::bad_data) << i;
    EXPECT_EQ(code_thrown_by([&] { return read_export(bytes.substr(0, i), "f"); }),
              weir::errc::bad_data);
  }
  EXPECT_EQ(code_thrown_by([&] { return read_export(bytes + "x", "f"); }), weir::errc::bad_data);
  const auto error =
      test_support::thrown_by([&] { return read_export(bytes.substr(0, 30), "f.run"); });
  EXPECT_TRUE(test_support::contains(test_support::what_of(error), "'f.run' at offset 24"));
}
