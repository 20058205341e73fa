// SPDX-License-Identifier: MIT
#include "durable/awakeable_id.hpp"

#include <cstring>

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace weir::detail {

namespace {

constexpr std::size_t id_bytes = 24;
constexpr std::size_t signed_bytes = 16;
constexpr std::string_view id_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

using id_block = std::array<unsigned char, id_bytes>;

void put(unsigned char* to, std::uint64_t n) noexcept {
  for (int i = 0; i < 8; ++i) to[i] = static_cast<unsigned char>(n >> (8 * i));
}
std::uint64_t get(const unsigned char* from) noexcept {
  std::uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | from[i];
  return n;
}

void sign(id_block& block, const std::array<unsigned char, 16>& secret) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), block.data(), signed_bytes,
       mac, &size);
  std::memcpy(block.data() + signed_bytes, mac, id_bytes - signed_bytes);
}

id_block block_of(const awakeable_ref& of, const std::array<unsigned char, 16>& secret) {
  id_block block;
  put(block.data(), of.run);
  put(block.data() + 8, of.command);
  sign(block, secret);
  return block;
}

}  // namespace

std::string awakeable_id(const awakeable_ref& of, const std::array<unsigned char, 16>& secret) {
  const id_block block = block_of(of, secret);
  std::string id;
  id.reserve(id_bytes / 3 * 4);
  for (std::size_t i = 0; i < id_bytes; i += 3) {
    const std::uint32_t n = static_cast<std::uint32_t>(block[i]) << 16 |
                            static_cast<std::uint32_t>(block[i + 1]) << 8 | block[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) id.push_back(id_digits[n >> shift & 63U]);
  }
  return id;
}

std::optional<awakeable_ref> parse_awakeable_id(std::string_view id,
                                                const std::array<unsigned char, 16>& secret) {
  if (id.size() != id_bytes / 3 * 4) return std::nullopt;
  id_block block;
  for (std::size_t i = 0; i < id.size(); i += 4) {
    std::uint32_t n = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t digit = id_digits.find(id[i + k]);
      if (digit == std::string_view::npos) return std::nullopt;
      n = n << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t k = 0; k < 3; ++k)
      block[i / 4 * 3 + k] = static_cast<unsigned char>(n >> (16 - 8 * k));
  }
  const awakeable_ref of{get(block.data()), get(block.data() + 8)};
  const id_block expected = block_of(of, secret);
  unsigned differs = 0;  // in constant time
  for (std::size_t i = 0; i < id_bytes; ++i)
    differs |= static_cast<unsigned>(block[i] ^ expected[i]);
  if (differs != 0) return std::nullopt;
  return of;
}

}  // namespace weir::detail
