// SPDX-License-Identifier: MIT
// Sealing and opening payloads, without a journal.
#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "durable/journal_support.hpp"
#include "durable/payload_keys.hpp"
#include "durable/record_secrets.hpp"
#include "durable/turn_record.hpp"

using journal_aid::errc_of;
using weir::errc;
using weir::detail::blank_secrets;
using weir::detail::command_answer;
using weir::detail::command_record;
using weir::detail::completion;
using weir::detail::find_secrets;
using weir::detail::journal_secret;
using weir::detail::key_bytes;
using weir::detail::key_ring;
using weir::detail::payload_cipher;
using weir::detail::payload_reader;
using weir::detail::payload_writer;
using weir::detail::record_head;
using weir::detail::record_type;
using weir::detail::sealed_with;
using weir::detail::secret_part;
using weir::detail::start_record;
using weir::detail::wiped_key;

namespace {

const std::string sealing_key(32, 'k');
const std::string elder_key(32, 'o');
constexpr journal_secret sealed_journal{9, 8, 7};
constexpr record_head sealed_head{.type = 7, .flags = 1, .run = 5, .fiber = 2, .index = 9};

payload_writer name_and_secret() {
  payload_writer out;
  out.name("a name").secret("a secret").number(17).secret("another one");
  return out;
}

std::string plain(const payload_writer& w) { return std::string(w.view().bytes); }

std::string sealed(payload_cipher& by, const payload_writer& w) {
  std::string stored;
  by.seal(sealed_head, w.view(), stored);
  return stored;
}

}  // namespace

TEST(payload_keys, what_is_sealed_opens_to_the_same_bytes) {
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  const payload_writer w = name_and_secret();
  for (int i = 0; i < 3; ++i) {
    std::string opened;
    EXPECT_TRUE(cipher.open(sealed_head, sealed(cipher, w), opened));
    EXPECT_EQ(opened, plain(w));
  }
}

TEST(payload_keys, names_and_numbers_stay_readable_and_secrets_do_not) {
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  const std::string stored = sealed(cipher, name_and_secret());
  EXPECT_NE(stored.find("a name"), std::string::npos);
  EXPECT_EQ(stored.find("secret"), std::string::npos);
  EXPECT_EQ(stored.find("another"), std::string::npos);
}

TEST(payload_keys, without_a_key_secrets_are_blanks_and_everything_else_is_as_it_was) {
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  std::string seen;
  ASSERT_TRUE(blank_secrets(sealed(cipher, name_and_secret()), seen));
  payload_reader in(seen);
  EXPECT_EQ(in.text(), "a name");
  EXPECT_EQ(in.text(), "********");
  EXPECT_EQ(in.number(), 17u);
  EXPECT_EQ(in.text(), "***********");
}

TEST(payload_keys, a_payload_of_many_and_of_large_secrets_opens) {
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  payload_writer w;
  for (int i = 0; i < 100; ++i) w.name("n" + std::to_string(i)).secret(std::string(1000, 's'));
  std::string opened;
  EXPECT_TRUE(cipher.open(sealed_head, sealed(cipher, w), opened));
  EXPECT_EQ(opened, plain(w));
}

TEST(payload_keys, equal_payloads_are_sealed_differently_each_time_and_in_each_open) {
  std::set<std::string> all;
  for (int open = 0; open < 3; ++open) {
    payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
    for (int i = 0; i < 3; ++i) all.insert(sealed(cipher, name_and_secret()).substr(48));
  }
  EXPECT_EQ(all.size(), 9u);
}

TEST(payload_keys, what_was_sealed_for_another_record_does_not_open) {
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  const std::string stored = sealed(cipher, name_and_secret());
  std::vector<record_head> others(5, sealed_head);
  others[0].type = 9;
  others[1].flags = 2;
  others[2].run = 6;
  others[3].fiber = 3;
  others[4].index = 10;
  std::string opened;
  for (const record_head& other : others) EXPECT_FALSE(cipher.open(other, stored, opened));
  payload_cipher elsewhere(key_ring::make(sealing_key), journal_secret{1});
  EXPECT_FALSE(elsewhere.open(sealed_head, stored, opened));
  EXPECT_TRUE(cipher.open(sealed_head, stored, opened));
}

TEST(payload_keys, no_byte_of_it_can_be_changed_and_none_left_out) {
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  const std::string stored = sealed(cipher, name_and_secret());
  std::string opened;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    std::string changed = stored;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(cipher.open(sealed_head, changed, opened)) << "byte " << i;
    EXPECT_FALSE(cipher.open(sealed_head, stored.substr(0, i), opened)) << "cut at " << i;
    std::string seen;
    (void)blank_secrets(changed, seen);
    (void)blank_secrets(stored.substr(0, i), seen);
  }
}

TEST(payload_keys, an_old_key_opens_what_it_sealed_and_an_unknown_one_nothing) {
  payload_cipher before(key_ring::make(elder_key), sealed_journal);
  const std::string stored = sealed(before, name_and_secret());
  const std::string_view old[] = {elder_key};
  payload_cipher now(key_ring::make(sealing_key, old), sealed_journal);
  payload_cipher without(key_ring::make(sealing_key), sealed_journal);
  std::string opened;
  EXPECT_TRUE(now.open(sealed_head, stored, opened));
  EXPECT_FALSE(without.open(sealed_head, stored, opened));
  EXPECT_FALSE(before.open(sealed_head, sealed(now, name_and_secret()), opened));
}

TEST(payload_keys, what_is_sealed_again_opens_with_the_present_key_alone) {
  payload_cipher before(key_ring::make(elder_key), sealed_journal);
  const std::string stored = sealed(before, name_and_secret());
  const std::string_view old[] = {elder_key};
  payload_cipher now(key_ring::make(sealing_key, old), sealed_journal);
  std::string again;
  ASSERT_TRUE(now.reseal(sealed_head, stored, again));
  EXPECT_EQ(again.find("secret"), std::string::npos);
  EXPECT_NE(again.find("a name"), std::string::npos);
  EXPECT_EQ(sealed_with(again), key_ring::make(sealing_key)->present());
  payload_cipher alone(key_ring::make(sealing_key), sealed_journal);
  std::string opened;
  EXPECT_TRUE(alone.open(sealed_head, again, opened));
  EXPECT_EQ(opened, plain(name_and_secret()));
  EXPECT_FALSE(alone.reseal(sealed_head, stored, again));
}

TEST(payload_keys, the_secrets_of_a_record_that_was_written_without_a_key_are_found) {
  auto expect_found = [](record_type type, const payload_writer& w) {
    std::vector<secret_part> found;
    find_secrets({.type = static_cast<std::uint16_t>(type)}, w.view().bytes, found);
    ASSERT_EQ(found.size(), w.view().secrets.size()) << static_cast<int>(type);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].from, w.view().secrets[i].from);
      EXPECT_EQ(found[i].bytes, w.view().secrets[i].bytes);
    }
  };
  payload_writer start;
  start_record{.id = "id", .handler = "h", .key = {}, .idempotency = "i", .input = "in"}.write(
      start);
  expect_found(record_type::run_start, start);
  for (const std::uint64_t digest : {0u, 17u}) {
    payload_writer command;
    command_record{"name", digest, 3}.write(command);
    expect_found(record_type::command, command);
  }
  payload_writer attempt;
  attempt.secret("a message");
  expect_found(record_type::attempt, attempt);
  expect_found(record_type::intent, {});
  payload_writer read_value;
  command_record{"name", 17, 0, "a value"}.write(read_value);
  expect_found(record_type::command, read_value);
  for (const record_type type :
       {record_type::run_end, record_type::cancel, record_type::answer, record_type::resolved,
        record_type::deadlock, record_type::signal, record_type::fired}) {
    payload_writer w;
    completion{type, 1, {}, "name", {command_answer::kind::value, errc{}, "text"}}.write(w);
    expect_found(type, w);
  }
  std::vector<secret_part> all;
  find_secrets({.type = 99}, "unknown", all);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].bytes, 7u);
}

TEST(payload_keys, payloads_of_more_opens_than_are_kept_at_hand_open) {
  std::vector<std::string> stored;
  for (int i = 0; i < 40; ++i) {
    payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
    stored.push_back(sealed(cipher, name_and_secret()));
  }
  payload_cipher cipher(key_ring::make(sealing_key), sealed_journal);
  std::string opened;
  for (int round = 0; round < 2; ++round)
    for (const std::string& s : stored) EXPECT_TRUE(cipher.open(sealed_head, s, opened));
}

TEST(payload_keys, the_id_of_a_key_is_stable_not_zero_and_another_for_each_key) {
  std::set<std::uint32_t> ids;
  for (char c = 'a'; c <= 'z'; ++c) {
    const std::string key(32, c);
    EXPECT_EQ(key_ring::make(key)->present(), key_ring::make(key)->present());
    ids.insert(key_ring::make(key)->present());
  }
  EXPECT_EQ(ids.size(), 26u);
  EXPECT_FALSE(ids.contains(0));
}

TEST(payload_keys, a_key_has_32_bytes_and_old_keys_need_a_present_one) {
  EXPECT_EQ(key_ring::make({}), nullptr);
  EXPECT_EQ(errc_of([] { return key_ring::make("short"); }), errc::invalid_argument);
  EXPECT_EQ(errc_of([] { return key_ring::make(std::string(33, 'x')); }), errc::invalid_argument);
  const std::string_view old[] = {elder_key};
  EXPECT_EQ(errc_of([&] { return key_ring::make({}, old); }), errc::invalid_argument);
  const std::string_view short_old[] = {"short"};
  EXPECT_EQ(errc_of([&] { return key_ring::make(sealing_key, short_old); }),
            errc::invalid_argument);
}

TEST(payload_keys, a_key_is_wiped_at_its_end) {
  alignas(wiped_key) unsigned char memory[sizeof(wiped_key)];
  auto* const key = new (memory) wiped_key(sealing_key);
  EXPECT_EQ(std::memcmp(key->data(), sealing_key.data(), key_bytes), 0);
  key->wipe();  // as the destructor does
  EXPECT_TRUE(std::all_of(memory, memory + sizeof memory, [](unsigned char b) { return b == 0; }));
  key->~wiped_key();
}
