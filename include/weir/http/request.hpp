// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <weir/duration.hpp>
#include <weir/io/endpoint.hpp>
#include <weir/stream/stream.hpp>
#include <weir/task.hpp>

namespace weir::detail {
class http_exchange;
}  // namespace weir::detail

namespace weir::http {

/// A request that a server has received; a handler gets it by reference. It ends with its answer:
/// when the last byte was written, also if that comes from a stream.
///
/// Views are valid as long. Threads: home loop only.
class request {
 public:
  std::string_view method() const noexcept;
  /// As it was sent.
  std::string_view target() const noexcept;
  /// Decoded once, without dot segments; `%2F` is kept, because it is no separator.
  std::string_view path() const noexcept;
  /// The first value of a key, decoded with `+` as space. A key without `=` is there and empty.
  std::optional<std::string> query(std::string_view key) const;
  /// The first field of this name.
  std::optional<std::string_view> header(std::string_view name) const noexcept;
  /// What a router has found for `{name}`, decoded. An unknown name: errc::invalid_argument.
  std::string_view param(std::string_view name) const;
  io::endpoint peer() const;
  /// When the client gives up, from its `x-deadline-ms`; the handler runs under it.
  std::optional<time_point> deadline() const noexcept;

  /// The whole body. Too large: errc::too_large (the answer is 413); cut short:
  /// errc::end_of_stream, badly framed: errc::bad_data (both 400); no byte for progress_timeout:
  /// timeout_error, and the connection is closed. A body is taken once: errc::already_taken.
  task<std::string> body();
  /// The body piece by piece, as it comes; ends and fails as body(). May be moved into the stream
  /// that answers. Pulled after the answer has ended, or still pulled when it ends: errc::closed.
  stream<std::string> body_stream();

  // Below: for the library.
  explicit request(detail::http_exchange& exchange) noexcept : exchange_(&exchange) {}
  request(const request&) = delete;
  request& operator=(const request&) = delete;
  detail::http_exchange& exchange() const noexcept { return *exchange_; }

 private:
  detail::http_exchange* exchange_;
};

}  // namespace weir::http
