// SPDX-License-Identifier: MIT
// Headers, frames and records as bytes, and the checksum over them.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/crc32c.hpp"
#include "durable/log_batch.hpp"
#include "durable/log_frame.hpp"
#include "durable/manifest.hpp"
#include "support/disk_support.hpp"

using disk_support::bytes;
using disk_support::generator;
using weir::detail::checksum_fits;
using weir::detail::checksum_seed;
using weir::detail::crc32c;
using weir::detail::crc32c_by_table;
using weir::detail::decode_manifest;
using weir::detail::decode_record;
using weir::detail::decode_segment_header;
using weir::detail::encode;
using weir::detail::journal_secret;
using weir::detail::journal_version;
using weir::detail::log_batch;
using weir::detail::log_layout;
using weir::detail::manifest;
using weir::detail::manifest_bytes;
using weir::detail::peek_frame;
using weir::detail::record_bytes;
using weir::detail::record_cursor;
using weir::detail::record_view;
using weir::detail::segment_header;
using weir::detail::segment_header_bytes;

namespace {

constexpr journal_secret frame_secret{42, 1};

std::vector<std::byte> random_content(generator& random, std::size_t n) {
  std::vector<std::byte> made(n);
  for (std::byte& b : made) b = static_cast<std::byte>(random.next());
  return made;
}

/// A batch of these payloads in one frame, sealed, without a segment header.
std::vector<std::byte> frame_of(const std::vector<std::string>& payloads) {
  log_layout layout({.segment = 3,
                     .offset = 64,
                     .capacity = 1 << 20,
                     .next_lsn = 10,
                     .segment_bytes = 1 << 20,
                     .epoch = 5,
                     .secret = frame_secret});
  log_batch batch;
  for (const std::string& p : payloads)
    layout.append(batch, {.type = 1, .flags = 2, .run = 3, .fiber = 4, .index = 5}, p);
  layout.close_frame(batch);
  batch.durable_lsn = 9;
  batch.seal(5, checksum_seed(frame_secret));
  return batch.bytes;
}

}  // namespace

TEST(crc32c, has_the_published_values) {
  EXPECT_EQ(crc32c(bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\0'))), 0x8a9136aau);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\xff'))), 0x62a8ab43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(crc32c, is_the_same_by_instruction_and_by_table_at_every_length_and_alignment) {
  generator random(1);
  const auto data = random_content(random, 5000);
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t n = 0; n < 300; ++n) {
      const auto part = std::span(data).subspan(begin, n);
      ASSERT_EQ(crc32c(part, 77), crc32c_by_table(part, 77)) << begin << " " << n;
    }
  for (std::size_t n = 300; n + 7 < data.size(); n += 97)
    ASSERT_EQ(crc32c(std::span(data).subspan(7, n)), crc32c_by_table(std::span(data).subspan(7, n)))
        << n;
}

TEST(crc32c, of_a_whole_is_that_of_its_parts_one_after_the_other) {
  EXPECT_EQ(crc32c(bytes("journal")), crc32c(bytes("nal"), crc32c(bytes("jour"))));
}

TEST(segment_header, comes_back_and_every_changed_bit_is_noticed) {
  const segment_header header{
      .number = 7, .epoch = 3, .first_lsn = 99, .secret = frame_secret, .bytes = 65536};
  std::array<std::byte, segment_header_bytes> as_bytes{};
  encode(header, as_bytes);
  const auto back = decode_segment_header(as_bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->version, journal_version);
  EXPECT_EQ(back->key_id, 0u);
  EXPECT_EQ(back->number, 7u);
  EXPECT_EQ(back->epoch, 3u);
  EXPECT_EQ(back->first_lsn, 99u);
  EXPECT_EQ(back->secret, frame_secret);
  EXPECT_EQ(back->bytes, 65536u);
  for (std::size_t bit = 0; bit < 8 * as_bytes.size(); ++bit) {
    as_bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_segment_header(as_bytes)) << bit;
    as_bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(manifest, comes_back_and_every_changed_bit_or_length_is_noticed) {
  const manifest m{.epoch = 3,
                   .first_segment = 2,
                   .first_lsn = 50,
                   .durable_lsn = 70,
                   .secret = frame_secret,
                   .segment_bytes = 1 << 20};
  std::array<std::byte, manifest_bytes> as_bytes{};
  encode(m, as_bytes);
  const auto back = decode_manifest(as_bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->epoch, 3u);
  EXPECT_EQ(back->first_segment, 2u);
  EXPECT_EQ(back->first_lsn, 50u);
  EXPECT_EQ(back->durable_lsn, 70u);
  EXPECT_EQ(back->secret, frame_secret);
  EXPECT_EQ(back->segment_bytes, 1u << 20);
  EXPECT_FALSE(decode_manifest(std::span(as_bytes).first(79)));
  for (std::size_t bit = 0; bit < 8 * as_bytes.size(); ++bit) {
    as_bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_manifest(as_bytes)) << bit;
    as_bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(frame, holds_its_records_in_order) {
  const std::vector<std::string> payloads{"one", "", std::string("\0\xff", 2), "four"};
  const auto frame = frame_of(payloads);
  const auto head = peek_frame(frame);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->bytes, frame.size());
  EXPECT_EQ(head->bytes % 8, 0u);
  EXPECT_EQ(head->records, 4u);
  EXPECT_EQ(head->first_lsn, 10u);
  EXPECT_EQ(head->durable_lsn, 9u);
  EXPECT_EQ(head->epoch, 5u);
  EXPECT_EQ(head->segment, 3u);
  EXPECT_TRUE(checksum_fits(frame, checksum_seed(frame_secret)));
  record_cursor cursor(frame);
  record_view record;
  for (const std::string& p : payloads) {
    ASSERT_TRUE(cursor.next(record));
    EXPECT_EQ(record.payload, p);
    EXPECT_EQ(record.head.type, 1u);
    EXPECT_EQ(record.head.flags, 2u);
    EXPECT_EQ(record.head.run, 3u);
    EXPECT_EQ(record.head.fiber, 4u);
    EXPECT_EQ(record.head.index, 5u);
  }
  EXPECT_TRUE(cursor.at_end());
}

TEST(frame, of_another_journal_does_not_fit) {
  const journal_secret other{42, 2};
  EXPECT_FALSE(checksum_fits(frame_of({"one"}), checksum_seed(other)));
}

TEST(frame, notices_every_changed_bit) {
  auto frame = frame_of({"one", "two"});
  const std::uint32_t seed = checksum_seed(frame_secret);
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    frame[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto head = peek_frame(frame);
    EXPECT_FALSE(head && head->bytes == frame.size() && checksum_fits(frame, seed)) << bit;
    frame[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(frame, has_the_bytes_of_the_specification) {
  const auto frame = frame_of({"A"});
  const std::array<unsigned char, 8> magic_and_size{'W', 'F', 'R', 'M', 0x50, 0, 0, 0};
  ASSERT_EQ(frame.size(), 80u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(std::to_integer<unsigned char>(frame[i]), magic_and_size[i]);
    EXPECT_EQ(std::to_integer<unsigned char>(frame[8 + i]), magic_and_size[4 + i]);
  }
  EXPECT_EQ(frame[16], std::byte{10});  // first LSN
  EXPECT_EQ(frame[24], std::byte{9});   // durable LSN
  EXPECT_EQ(frame[32], std::byte{5});   // epoch
  EXPECT_EQ(frame[40], std::byte{3});   // segment
  EXPECT_EQ(frame[48 + 4], std::byte{1});
  EXPECT_EQ(frame[48 + 28], std::byte{'A'});
}

TEST(record, is_found_by_itself_and_notices_every_changed_bit) {
  const std::uint32_t seed = checksum_seed(frame_secret);
  std::vector<std::byte> record(record_bytes(5));
  encode({.type = 9, .run = 8}, "hello", record, seed);
  ASSERT_TRUE(decode_record(record, seed));
  EXPECT_EQ(decode_record(record, seed)->payload, "hello");
  EXPECT_FALSE(decode_record(std::span(record).first(record.size() - 1), seed));
  EXPECT_FALSE(decode_record(std::span(record).first(3), seed));
  for (std::size_t bit = 0; bit < 8 * record.size(); ++bit) {
    record[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(decode_record(record, seed)) << bit;
    record[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(log_layout, begins_a_segment_when_a_frame_does_not_fit_and_never_writes_beyond_one) {
  log_layout layout({.segment = 1,
                     .offset = 64,
                     .capacity = 1000,
                     .next_lsn = 1,
                     .segment_bytes = 2000,
                     .epoch = 1,
                     .secret = frame_secret});
  log_batch batch;
  for (int i = 0; i < 40; ++i) layout.append(batch, {.type = 1}, std::string(100, 'x'));
  layout.close_frame(batch);
  ASSERT_EQ(batch.extents.size(), 4u);
  for (std::size_t i = 0; i < batch.extents.size(); ++i) {
    const log_batch::extent& e = batch.extents[i];
    EXPECT_EQ(e.segment, i + 1);
    EXPECT_EQ(e.offset, i == 0 ? 64u : 0u);
    EXPECT_LE(e.offset + batch.bytes_of(i).size(), i == 0 ? 1000u : 2000u);
  }
  std::uint64_t lsn = 1;
  for (const log_batch::frame& f : batch.frames) {
    EXPECT_EQ(f.head.first_lsn, lsn);
    lsn = f.head.end_lsn();
  }
  EXPECT_EQ(lsn, 41u);
}
