// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace weir::detail {

/// The fields of a record besides its payload.
struct record_head {
  std::uint16_t type = 0;   // never 0
  std::uint16_t flags = 0;  // the lower eight bits are the engine's, the upper ones the log's
  std::uint64_t run = 0;
  std::uint32_t fiber = 0;
  std::uint32_t index = 0;
};

/// About the bytes of a record in the log: a large payload is outside of it.
constexpr std::uint64_t bytes_in_log(std::string_view payload) noexcept {
  constexpr std::uint64_t fields = 28;
  constexpr std::uint64_t largest = std::uint64_t{64} << 10;
  constexpr std::uint64_t name = 40;
  return fields + (payload.size() > largest ? name : payload.size());
}

/// A part of a payload that is encrypted if the journal has a key.
struct secret_part {
  std::uint32_t from;
  std::uint32_t bytes;
};

/// A payload, and which parts of it are secret; from a plain text: none.
struct payload_view {
  payload_view() = default;
  payload_view(std::string_view text, std::span<const secret_part> secret_parts) noexcept
      : bytes(text), secrets(secret_parts) {}
  template <class Text>
    requires std::is_convertible_v<const Text&, std::string_view>
  payload_view(const Text& text) noexcept : bytes(text) {}

  std::string_view bytes;
  std::span<const secret_part> secrets;  // in order, not empty, without overlaps
};

/// The position of a record: the number of its segment and the offset in it, as one number that
/// grows along the log.
using record_place = std::uint64_t;

constexpr record_place make_place(std::uint64_t segment, std::uint64_t offset) noexcept {
  return segment << 32 | offset;
}
constexpr std::uint64_t segment_of(record_place place) noexcept { return place >> 32; }
constexpr std::uint64_t offset_of(record_place place) noexcept { return place & 0xffff'ffff; }

/// Receives the records of a journal that is being opened, in order.
class record_reader {
 public:
  /// `payload` is valid during the call. If it is stored in a blob, it is the content of the blob;
  /// if it is sealed, it is opened.
  virtual void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
                   record_place place) = 0;

 protected:
  ~record_reader() = default;
};

}  // namespace weir::detail
