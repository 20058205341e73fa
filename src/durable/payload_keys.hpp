// SPDX-License-Identifier: MIT
// Encryption of payloads: AES-256-GCM, per record. docs/journal-format.md specifies the bytes.
//
// What is sealed: the parts of a payload that its writer marks (inputs, results, values, messages).
// Names, ids, keys, times, codes and the lengths of all parts stay readable. A sealed payload holds
// all that is needed to open it besides the key, so it can be read alone.
//
// Why no nonce repeats under a key: a cipher seals with a key of its own, derived by HKDF-SHA256
// from the engine's key, the journal's secret and a salt of 16 random bytes that each cipher draws:
// one for each open of a journal, and one for each compaction, which seals on another thread. Under
// that key the nonce is a counter that grows with each payload, even if the payload is then not
// appended. So neither a torn tail that is
// written again, nor a recycled segment, nor a blob, nor a copy of a journal that is continued in
// two places can repeat one, unless two salts are equal (2^-64 after 2^32 ciphers).
//
// Why sealed parts cannot be exchanged: the record's type, flags, run, fiber and index and the
// readable parts of the payload are authenticated with them, and the derived key binds the journal.
// This protects payloads; it does not detect that a whole record was removed or repeated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "durable/log_frame.hpp"
#include "durable/record.hpp"

struct evp_cipher_ctx_st;

namespace weir::detail {

inline constexpr std::size_t key_bytes = 32;
/// Chosen at random for each cipher that seals.
using seal_salt = std::array<unsigned char, 16>;

/// 32 secret bytes; wiped by the destructor.
class wiped_key {
 public:
  wiped_key() = default;
  explicit wiped_key(std::string_view bytes) noexcept;
  wiped_key(const wiped_key&) = delete;
  wiped_key& operator=(const wiped_key&) = delete;
  ~wiped_key() { wipe(); }
  void wipe() noexcept;
  unsigned char* data() noexcept { return bytes_.data(); }
  const unsigned char* data() const noexcept { return bytes_.data(); }

 private:
  std::array<unsigned char, key_bytes> bytes_{};
};

/// The keys of a journal: the present one, with which it seals, and old ones, which open what was
/// sealed earlier. Immutable. Keys are named by their ids, which do not reveal them.
class key_ring {
 public:
  /// Null if `present` is empty. errc::invalid_argument if a key does not have 32 bytes, or if
  /// there are old keys but no present one.
  static std::shared_ptr<const key_ring> make(std::string_view present,
                                              std::span<const std::string_view> old = {});

  std::uint32_t present() const noexcept { return keys_[0].id; }
  /// Null if there is none of this id.
  const wiped_key* find(std::uint32_t id) const noexcept;

 private:
  struct named_key {
    std::uint32_t id = 0;  // never 0
    std::unique_ptr<wiped_key> key;
  };
  explicit key_ring(std::vector<named_key> keys) noexcept : keys_(std::move(keys)) {}
  static named_key name(std::string_view key);

  std::vector<named_key> keys_;  // the present one first
};

/// Seals and opens the payloads of one journal. Threads: one at a time.
class payload_cipher {
 public:
  /// `salt`: of no other cipher; nullopt: from the system's generator.
  payload_cipher(std::shared_ptr<const key_ring> keys, const journal_secret& secret,
                 const std::optional<seal_salt>& salt = std::nullopt);
  payload_cipher(const payload_cipher&) = delete;
  payload_cipher& operator=(const payload_cipher&) = delete;
  ~payload_cipher();

  /// `into` receives what is to be stored. Requires: the payload has a part that is secret.
  void seal(const record_head& head, const payload_view& payload, std::string& into);
  /// `into` receives the payload. False if it was sealed for another record or with a key that is
  /// not in the ring, or is damaged.
  bool open(const record_head& head, std::string_view stored, std::string& into);
  /// The id of the key that it seals with.
  std::uint32_t present() const noexcept { return keys_->present(); }
  /// Whether it can open what was sealed with this key.
  bool has(std::uint32_t key) const noexcept { return keys_->find(key) != nullptr; }
  /// Opens a payload and seals the same parts of it with the present key. False as `open`.
  bool reseal(const record_head& head, std::string_view stored, std::string& into);

 private:
  struct freed {
    void operator()(evp_cipher_ctx_st* c) const noexcept;
  };
  using context = std::unique_ptr<evp_cipher_ctx_st, freed>;
  struct opener {
    std::uint32_t key;
    seal_salt salt;
    context cipher;
  };
  context make_context(const wiped_key& key, const seal_salt& salt, bool seals) const;
  evp_cipher_ctx_st* opener_for(std::uint32_t key, const seal_salt& salt);

  std::shared_ptr<const key_ring> keys_;
  journal_secret secret_;
  std::optional<seal_salt> salt_;  // drawn for the first payload that is sealed
  std::uint64_t sealed_ = 0;       // so far
  context sealer_;
  std::vector<opener> openers_;  // a few, for the opens whose records are being read
  std::size_t oldest_ = 0;
};

/// The id of the key that sealed a payload; 0 if it is not a sealed payload.
std::uint32_t sealed_with(std::string_view stored) noexcept;

/// For readers without a key: `into` receives the payload with `*` in place of each secret byte.
/// False if `stored` is not a sealed payload.
bool blank_secrets(std::string_view stored, std::string& into);

}  // namespace weir::detail
