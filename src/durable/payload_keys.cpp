// SPDX-License-Identifier: MIT
#include "durable/payload_keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <weir/error.hpp>

#include "durable/little_endian.hpp"

namespace weir::detail {

namespace {

// A sealed payload: fixed part, one entry per secret part, the payload with its secret parts
// encrypted in place, tag.
constexpr std::size_t salt_at = 8;
constexpr std::size_t counter_at = 24;
constexpr std::size_t parts_at = 32;
constexpr std::size_t part_bytes = 8;
constexpr std::size_t tag_bytes = 16;
constexpr std::size_t nonce_bytes = 12;
constexpr std::size_t head_bytes = 20;
constexpr std::size_t openers_max = 16;
/// The functions of the cipher take an int.
constexpr std::size_t at_once_max = std::size_t{1} << 30;

constexpr std::string_view id_label = "weir journal key id";
constexpr std::string_view seal_label = "weir journal payloads";

/// The functions of OpenSSL used here fail only if memory runs out.
void require(int done) {
  if (done != 1) throw std::bad_alloc();
}

seal_salt draw_salt() {
  seal_salt salt{};
  if (RAND_bytes(salt.data(), static_cast<int>(salt.size())) != 1)
    raise(errc::journal_failed, "the system's generator gives no random bytes");
  return salt;
}

/// HMAC-SHA256.
void keyed_hash(std::span<const unsigned char> key, std::span<const unsigned char> text,
                unsigned char* into) {
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(), text.size(), into,
           &size) == nullptr)
    throw std::bad_alloc();
}

std::byte* bytes_of(std::string& text) noexcept {
  return std::as_writable_bytes(std::span(text)).data();
}
const std::byte* bytes_of(std::string_view text) noexcept {
  return std::as_bytes(std::span(text)).data();
}
const unsigned char* octets_of(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// The parts of a stored payload, as views of it.
struct sealed_view {
  std::uint32_t key = 0;
  seal_salt salt{};
  std::string_view prefix;  // everything before the payload
  std::string_view payload;
  std::string_view tag;

  std::size_t parts() const noexcept { return (prefix.size() - parts_at) / part_bytes; }
  secret_part part(std::size_t i) const noexcept {
    const std::byte* at = bytes_of(prefix) + parts_at + i * part_bytes;
    return {load<std::uint32_t>(at), load<std::uint32_t>(at + 4)};
  }
};

/// Nothing is trusted: the parts must be in order and inside the payload.
std::optional<sealed_view> parse(std::string_view stored) noexcept {
  if (stored.size() < parts_at + tag_bytes) return std::nullopt;
  const std::uint64_t count = load<std::uint32_t>(bytes_of(stored) + 4);
  const std::uint64_t prefix = parts_at + count * part_bytes;
  if (count == 0 || prefix > stored.size() - tag_bytes) return std::nullopt;
  sealed_view v;
  v.key = load<std::uint32_t>(bytes_of(stored));
  std::memcpy(v.salt.data(), stored.data() + salt_at, v.salt.size());
  v.prefix = stored.substr(0, static_cast<std::size_t>(prefix));
  v.payload = stored.substr(v.prefix.size(), stored.size() - v.prefix.size() - tag_bytes);
  v.tag = stored.substr(stored.size() - tag_bytes);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < v.parts(); ++i) {
    const secret_part p = v.part(i);
    if (p.from < end || std::uint64_t{p.from} + p.bytes > v.payload.size()) return std::nullopt;
    end = std::uint64_t{p.from} + p.bytes;
  }
  return v;
}

void update(evp_cipher_ctx_st* c, unsigned char* into, std::string_view text) {
  while (!text.empty()) {
    const std::string_view some = text.substr(0, at_once_max);
    int written = 0;
    require(EVP_CipherUpdate(c, into, &written, octets_of(some), static_cast<int>(some.size())));
    if (into != nullptr) into += some.size();
    text.remove_prefix(some.size());
  }
}

/// Runs the cipher over a payload: what is authenticated, then the secret parts, from `from` to
/// the same places in `into`.
void process(evp_cipher_ctx_st* c, const record_head& head, const sealed_view& v,
             std::string_view from, unsigned char* into) {
  std::array<unsigned char, nonce_bytes> nonce{};
  std::memcpy(nonce.data(), v.prefix.data() + counter_at, sizeof(std::uint64_t));
  require(EVP_CipherInit_ex(c, nullptr, nullptr, nullptr, nonce.data(), -1));
  std::array<char, head_bytes> fields{};
  std::byte* at = std::as_writable_bytes(std::span(fields)).data();
  store(at, head.type);
  store(at + 2, static_cast<std::uint16_t>(head.flags & record_engine_flags));
  store(at + 4, head.run);
  store(at + 12, head.fiber);
  store(at + 16, head.index);
  update(c, nullptr, {fields.data(), fields.size()});
  update(c, nullptr, v.prefix);
  std::size_t end = 0;
  for (std::size_t i = 0; i < v.parts(); ++i) {
    const secret_part p = v.part(i);
    update(c, nullptr, from.substr(end, p.from - end));
    end = std::size_t{p.from} + p.bytes;
  }
  update(c, nullptr, from.substr(end));
  for (std::size_t i = 0; i < v.parts(); ++i) {
    const secret_part p = v.part(i);
    update(c, into + p.from, from.substr(p.from, p.bytes));
  }
}

}  // namespace

// ------------------------------------------------------------------ keys

wiped_key::wiped_key(std::string_view bytes) noexcept {
  std::memcpy(bytes_.data(), bytes.data(), std::min(bytes.size(), bytes_.size()));
}

void wiped_key::wipe() noexcept { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

key_ring::named_key key_ring::name(std::string_view key) {
  if (key.size() != key_bytes)
    raise(errc::invalid_argument,
          "a key of a journal has " + std::to_string(key.size()) + " bytes; give 32 random bytes");
  wiped_key hash;
  keyed_hash({octets_of(key), key.size()}, {octets_of(id_label), id_label.size()}, hash.data());
  const auto id = load<std::uint32_t>(reinterpret_cast<const std::byte*>(hash.data()));
  return {id == 0 ? 1 : id, std::make_unique<wiped_key>(key)};
}

std::shared_ptr<const key_ring> key_ring::make(std::string_view present,
                                               std::span<const std::string_view> old) {
  if (present.empty()) {
    if (!old.empty())
      raise(errc::invalid_argument,
            "a journal is given old keys but no encryption_key; give it one to write with");
    return nullptr;
  }
  std::vector<named_key> keys;
  keys.push_back(name(present));
  for (const std::string_view key : old) keys.push_back(name(key));
  return std::shared_ptr<const key_ring>(new key_ring(std::move(keys)));
}

const wiped_key* key_ring::find(std::uint32_t id) const noexcept {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const named_key& k) { return k.id == id; });
  return found == keys_.end() ? nullptr : found->key.get();
}

// ------------------------------------------------------------------ the cipher

void payload_cipher::freed::operator()(evp_cipher_ctx_st* c) const noexcept {
  EVP_CIPHER_CTX_free(c);  // wipes the key
}

payload_cipher::payload_cipher(std::shared_ptr<const key_ring> keys, const journal_secret& secret,
                               const std::optional<seal_salt>& salt)
    : keys_(std::move(keys)), secret_(secret), salt_(salt) {}

payload_cipher::~payload_cipher() = default;

/// With a key derived by HKDF (RFC 5869): the hash is as long as the key, so one block suffices.
payload_cipher::context payload_cipher::make_context(const wiped_key& key, const seal_salt& salt,
                                                     bool seals) const {
  wiped_key extracted;
  keyed_hash(secret_, {key.data(), key_bytes}, extracted.data());
  std::string info(seal_label);
  info.append(reinterpret_cast<const char*>(salt.data()), salt.size()).append(1, '\x01');
  wiped_key derived;
  keyed_hash({extracted.data(), key_bytes}, {octets_of(info), info.size()}, derived.data());
  context made(EVP_CIPHER_CTX_new());
  if (made == nullptr) throw std::bad_alloc();
  require(EVP_CipherInit_ex(made.get(), EVP_aes_256_gcm(), nullptr, derived.data(), nullptr,
                            seals ? 1 : 0));
  return made;
}

void payload_cipher::seal(const record_head& head, const payload_view& payload, std::string& into) {
  if (sealer_ == nullptr) {
    if (!salt_) salt_ = draw_salt();
    sealer_ = make_context(*keys_->find(keys_->present()), *salt_, true);
  }
  const std::size_t prefix = parts_at + payload.secrets.size() * part_bytes;
  into.resize(prefix);
  std::byte* at = bytes_of(into);
  store(at, keys_->present());
  store(at + 4, static_cast<std::uint32_t>(payload.secrets.size()));
  std::memcpy(at + salt_at, salt_->data(), salt_->size());
  store(at + counter_at, ++sealed_);
  for (std::size_t i = 0; i < payload.secrets.size(); ++i) {
    store(at + parts_at + i * part_bytes, payload.secrets[i].from);
    store(at + parts_at + i * part_bytes + 4, payload.secrets[i].bytes);
  }
  into.append(payload.bytes).resize(into.size() + tag_bytes);
  sealed_view v;
  v.prefix = std::string_view(into).substr(0, prefix);
  auto* const out = reinterpret_cast<unsigned char*>(into.data()) + prefix;
  process(sealer_.get(), head, v, payload.bytes, out);
  int rest = 0;
  unsigned char* const tag = out + payload.bytes.size();
  require(EVP_CipherFinal_ex(sealer_.get(), tag, &rest));
  require(EVP_CIPHER_CTX_ctrl(sealer_.get(), EVP_CTRL_AEAD_GET_TAG, tag_bytes, tag));
}

evp_cipher_ctx_st* payload_cipher::opener_for(std::uint32_t key, const seal_salt& salt) {
  for (const opener& o : openers_)
    if (o.key == key && o.salt == salt) return o.cipher.get();
  const wiped_key* const found = keys_->find(key);
  if (found == nullptr) return nullptr;
  opener made{key, salt, make_context(*found, salt, false)};
  if (openers_.size() < openers_max) {
    openers_.push_back(std::move(made));
    return openers_.back().cipher.get();
  }
  opener& slot = openers_[oldest_++ % openers_max];
  slot = std::move(made);
  return slot.cipher.get();
}

bool payload_cipher::open(const record_head& head, std::string_view stored, std::string& into) {
  const auto v = parse(stored);
  if (!v) return false;
  evp_cipher_ctx_st* const c = opener_for(v->key, v->salt);
  if (c == nullptr) return false;
  into = v->payload;
  process(c, head, *v, v->payload, reinterpret_cast<unsigned char*>(into.data()));
  std::array<unsigned char, tag_bytes> tag{};
  std::memcpy(tag.data(), v->tag.data(), tag.size());
  require(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag.data()));
  int rest = 0;
  std::array<unsigned char, tag_bytes> none{};
  if (EVP_CipherFinal_ex(c, none.data(), &rest) == 1) return true;
  OPENSSL_cleanse(into.data(), into.size());
  into.clear();
  return false;
}

bool payload_cipher::reseal(const record_head& head, std::string_view stored, std::string& into) {
  std::string payload;
  if (!open(head, stored, payload)) return false;
  const auto v = parse(stored);
  std::vector<secret_part> parts;
  parts.reserve(v->parts());
  for (std::size_t i = 0; i < v->parts(); ++i) parts.push_back(v->part(i));
  seal(head, {payload, parts}, into);
  return true;
}

std::uint32_t sealed_with(std::string_view stored) noexcept {
  const auto v = parse(stored);
  return v ? v->key : 0;
}

bool blank_secrets(std::string_view stored, std::string& into) {
  const auto v = parse(stored);
  if (!v) return false;
  into = v->payload;
  for (std::size_t i = 0; i < v->parts(); ++i) {
    const secret_part p = v->part(i);
    into.replace(p.from, p.bytes, p.bytes, '*');
  }
  return true;
}

}  // namespace weir::detail
