// SPDX-License-Identifier: MIT
// HTTP/1 messages as bytes: appended to a string that its owner keeps, so that a warm connection
// allocates nothing. Names and values were checked when they were made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <weir/duration.hpp>

namespace weir::detail {

/// "OK" for 200; empty if the status is unknown.
std::string_view http_reason(int status) noexcept;

void append_status_line(std::string& out, int minor, int status);
void append_request_line(std::string& out, std::string_view method, std::string_view target);
void append_http_field(std::string& out, std::string_view name, std::string_view value);
void append_http_field(std::string& out, std::string_view name, std::uint64_t value);
/// The empty line behind the fields.
inline void append_head_end(std::string& out) { out += "\r\n"; }

/// A chunk of a chunked body; nothing if there is no data, which would end the body.
void append_chunk(std::string& out, std::string_view data);
inline void append_last_chunk(std::string& out) { out += "0\r\n\r\n"; }

/// The value of a `date` field, made anew once per second. One for each thread.
std::string_view http_date(wall_time now);

}  // namespace weir::detail
