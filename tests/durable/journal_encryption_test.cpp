// SPDX-License-Identifier: MIT
// Journals with keys: which segment is sealed with which, what opens, what is refused.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_reader.hpp"
#include "durable/journal_support.hpp"
#include "durable/log_frame.hpp"
#include "durable/payload_keys.hpp"

using namespace journal_aid;
using disk_support::rig;
using weir::errc;
using weir::detail::key_ring;
using weir::detail::payload_view;
using weir::detail::secret_part;

namespace {

const std::string first_key(32, '1');
const std::string second_key(32, '2');
const std::string third_key(32, '3');

using ring = std::shared_ptr<const key_ring>;

ring keyed(std::string_view present, std::vector<std::string_view> old = {}) {
  return key_ring::make(present, old);
}

journal_options with(weir::disk& disk, ring keys) {
  journal_options o = on(disk);
  o.keys = std::move(keys);
  return o;
}

/// Its first four bytes are a name, the rest is secret.
journal::appended append_secret(journal& j, std::string_view payload) {
  const secret_part part{4, static_cast<std::uint32_t>(payload.size() - 4)};
  return j.append({.type = 7, .flags = 3, .run = 5, .fiber = 2, .index = 9},
                  payload_view(payload, std::span(&part, 1)));
}

void write_secret(weir::disk& disk, ring keys, std::string_view payload) {
  opened o(with(disk, std::move(keys)));
  append_secret(o.j, payload);
  commit(o.j);
}

texts payloads_with(weir::disk& disk, ring keys) {
  return opened(with(disk, std::move(keys))).seen.payloads();
}

bool on_disk_in_clear(weir::disk& disk, std::string_view text) {
  for (const auto& [name, content] : files(disk))
    if (content.find(text) != std::string::npos) return true;
  return false;
}

/// Refused with errc::wrong_key and a text with this part; nothing is changed.
void expect_wrong_key(weir::disk& disk, ring keys, const std::string& part) {
  const image before = files(disk);
  journal j(with(disk, std::move(keys)));
  collector seen;
  EXPECT_EQ(errc_of([&] { j.open(seen); }), errc::wrong_key);
  const std::string text = disk_support::text_of([&] { j.open(seen); });
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_TRUE(files(disk) == before);
  EXPECT_TRUE(seen.records.empty());
}

std::uint32_t key_of(weir::disk& disk, std::uint64_t number) {
  const std::string bytes = disk_support::get(disk, segment(number));
  const auto header = weir::detail::decode_segment_header(
      std::as_bytes(std::span(bytes)).first<weir::detail::segment_header_bytes>());
  return header ? header->key_id : 0;
}

struct keyless_reader final : weir::detail::journal_visitor {
  void restart() override { found.clear(); }
  void see(const record_head&, std::string_view payload, std::uint64_t, record_place) override {
    found.emplace_back(payload);
  }
  texts found;
};

}  // namespace

TEST(journal_encryption, records_read_back_before_and_after_the_commit_and_the_open) {
  rig r;
  record_place place = 0;
  {
    opened o(with(r.disk, keyed(first_key)));
    place = append_secret(o.j, "nameMARKER").place;
    EXPECT_EQ(read(o.j, place), "nameMARKER");
    auto batch = o.j.take();
    EXPECT_EQ(read(o.j, place), "nameMARKER");
    o.j.commit(*batch);
    o.j.committed(std::move(batch));
    EXPECT_EQ(read(o.j, place), "nameMARKER");
  }
  opened again(with(r.disk, keyed(first_key)));
  EXPECT_EQ(again.seen.payloads(), texts{"nameMARKER"});
  EXPECT_EQ(again.seen.records[0].head.flags, 3);
  EXPECT_EQ(read(again.j, place), "nameMARKER");
  EXPECT_FALSE(on_disk_in_clear(r.disk, "MARKER"));
  EXPECT_TRUE(on_disk_in_clear(r.disk, "name"));
}

TEST(journal_encryption, a_blob_is_sealed_and_equal_contents_have_different_blobs) {
  rig r;
  const std::string large = "name" + std::string(20'000, 'M') + "MARKER";
  {
    opened o(with(r.disk, keyed(first_key)));
    const auto a = append_secret(o.j, large);
    append_secret(o.j, large);
    EXPECT_EQ(read(o.j, a.place), large);
    commit(o.j);
    EXPECT_EQ(read(o.j, a.place), large);
  }
  EXPECT_EQ(r.disk.list("j/blob").size(), 2u);
  EXPECT_FALSE(on_disk_in_clear(r.disk, "MARKER"));
  EXPECT_FALSE(on_disk_in_clear(r.disk, "MMMM"));
  EXPECT_EQ(payloads_with(r.disk, keyed(first_key)), (texts{large, large}));
}

TEST(journal_encryption, without_its_key_it_is_refused_and_unchanged) {
  rig r;
  write_secret(r.disk, keyed(first_key), "name text");
  expect_wrong_key(r.disk, nullptr, "encryption_key");
  expect_wrong_key(r.disk, keyed(second_key), "old_keys");
  expect_wrong_key(r.disk, keyed(second_key, {third_key}), "old_keys");
  EXPECT_EQ(payloads_with(r.disk, keyed(first_key)), texts{"name text"});
}

TEST(journal_encryption, a_new_one_is_sealed_from_its_first_segment_even_before_a_record) {
  rig r;
  {
    opened o(with(r.disk, keyed(first_key)));
  }
  EXPECT_EQ(key_of(r.disk, 1), keyed(first_key)->present());
  expect_wrong_key(r.disk, nullptr, "encryption_key");
}

TEST(journal_encryption, a_key_given_later_seals_from_the_next_segment_on) {
  rig r;
  write_secret(r.disk, nullptr, "namePLAIN");
  EXPECT_TRUE(on_disk_in_clear(r.disk, "PLAIN"));
  write_secret(r.disk, keyed(first_key), "nameMARKER");
  EXPECT_EQ(key_of(r.disk, 1), 0u);
  EXPECT_EQ(key_of(r.disk, 2), keyed(first_key)->present());
  EXPECT_FALSE(on_disk_in_clear(r.disk, "MARKER"));
  write_secret(r.disk, keyed(first_key), "nameMARKER 2");  // in the same segment
  EXPECT_FALSE(r.disk.exists(segment(3)));
  EXPECT_EQ(payloads_with(r.disk, keyed(first_key)),
            (texts{"namePLAIN", "nameMARKER", "nameMARKER 2"}));
  expect_wrong_key(r.disk, nullptr, weir::detail::segment_name(2));
}

TEST(journal_encryption, a_key_given_to_an_empty_journal_seals_its_first_record) {
  rig r;
  {
    opened o(with(r.disk, nullptr));
  }
  write_secret(r.disk, keyed(first_key), "nameMARKER");
  r.disk.unlink("j/MANIFEST");
  EXPECT_EQ(payloads_with(r.disk, keyed(first_key)), texts{"nameMARKER"});
  EXPECT_FALSE(on_disk_in_clear(r.disk, "MARKER"));
}

TEST(journal_encryption, opening_without_appending_begins_no_segment) {
  rig r;
  write_secret(r.disk, keyed(first_key), "name a");
  for (int i = 0; i < 3; ++i) (void)payloads_with(r.disk, keyed(second_key, {first_key}));
  EXPECT_FALSE(r.disk.exists(segment(2)));
}

TEST(journal_encryption, keys_are_rotated_by_keeping_the_old_ones) {
  rig r;
  write_secret(r.disk, keyed(first_key), "name a");
  write_secret(r.disk, keyed(second_key, {first_key}), "name b");
  write_secret(r.disk, keyed(third_key, {second_key, first_key}), "name c");
  const ring all = keyed(third_key, {first_key, second_key});
  opened o(with(r.disk, all));
  EXPECT_EQ(o.seen.payloads(), (texts{"name a", "name b", "name c"}));
  for (const seen_record& s : o.seen.records) EXPECT_EQ(read(o.j, s.place), s.payload);
}

TEST(journal_encryption, a_rotated_one_needs_all_of_its_keys) {
  rig r;
  write_secret(r.disk, keyed(first_key), "name a");
  write_secret(r.disk, keyed(second_key, {first_key}), "name b");
  expect_wrong_key(r.disk, keyed(second_key), "old_keys");
  expect_wrong_key(r.disk, keyed(first_key), "old_keys");
  EXPECT_EQ(payloads_with(r.disk, keyed(first_key, {second_key})), (texts{"name a", "name b"}));
}

TEST(journal_encryption, without_a_key_the_files_are_the_same_whatever_is_secret) {
  rig plain;
  rig marked;
  {
    opened o(on(plain.disk));
    append(o.j, "name and text");
    commit(o.j);
  }
  write_secret(marked.disk, nullptr, "name and text");
  EXPECT_TRUE(files(plain.disk) == files(marked.disk));
}

TEST(journal_encryption, a_sealed_payload_under_a_good_checksum_that_does_not_open_is_damage) {
  rig r;
  record_place place = 0;
  {
    opened o(with(r.disk, keyed(first_key)));
    append_secret(o.j, "name first");
    place = append_secret(o.j, "name second").place;
    commit(o.j);
  }
  // Whoever changes it on purpose makes the checksums fit, too: they are no secret.
  std::string bytes = disk_support::get(r.disk, segment(1));
  const auto all = std::as_writable_bytes(std::span(bytes));
  const auto at = static_cast<std::size_t>(weir::detail::offset_of(place));
  all[at + 12] = std::byte{6};  // the run
  const std::uint32_t seed = weir::detail::checksum_seed(test_secret);
  const auto head = weir::detail::peek_frame(all.subspan(64));
  weir::detail::seal(*head, all.subspan(64, head->bytes), seed);
  auto file = r.disk.open(segment(1), weir::open_mode::read_write);
  disk_support::put(*file, bytes);
  const image before = files(r.disk);
  journal j(with(r.disk, keyed(first_key)));
  collector seen;
  EXPECT_EQ(errc_of([&] { j.open(seen); }), errc::journal_corrupt);
  const std::string text = disk_support::text_of([&] { j.open(seen); });
  EXPECT_NE(text.find(segment(1)), std::string::npos) << text;
  EXPECT_NE(text.find("at offset " + std::to_string(at)), std::string::npos) << text;
  EXPECT_TRUE(files(r.disk) == before);
}

TEST(journal_encryption, a_flipped_byte_is_damage_or_a_torn_tail_as_without_a_key) {
  rig base;
  for (const char* text : {"name a", "name b", "name c"}) {
    write_secret(base.disk, keyed(first_key), text);
  }
  const image good = files(base.disk);
  const std::size_t end = good.at("seg-0000000000000001.wlog").find_last_not_of('\0');
  for (std::size_t i = 64; i <= end; i += 7) {
    rig r;
    image bad = good;
    char& c = bad["seg-0000000000000001.wlog"][i];
    c = static_cast<char>(c ^ 4);
    restore(r.disk, bad);
    const image before = files(r.disk);
    journal j(with(r.disk, keyed(first_key)));
    collector seen;
    const errc code = errc_of([&] { j.open(seen); });
    if (code == errc{}) {  // only what no later open has proven
      EXPECT_EQ(seen.payloads(), (texts{"name a", "name b"}));
    } else {
      EXPECT_EQ(code, errc::journal_corrupt);
      EXPECT_TRUE(files(r.disk) == before);
    }
  }
}

TEST(journal_encryption, a_reader_beside_the_owner_needs_no_key_for_what_is_readable) {
  rig r;
  opened o(with(r.disk, keyed(first_key)));
  append_secret(o.j, "nameMARKER");
  commit(o.j);
  keyless_reader blind;
  weir::detail::journal_reader(r.disk, "j").read(blind);
  EXPECT_EQ(blind.found, texts{"name******"});
  keyless_reader seeing;
  weir::detail::journal_reader(r.disk, "j", keyed(first_key)).read(seeing);
  EXPECT_EQ(seeing.found, texts{"nameMARKER"});
  weir::detail::journal_reader wrong(r.disk, "j", keyed(second_key));
  EXPECT_EQ(errc_of([&] { wrong.read(seeing); }), errc::wrong_key);
}
