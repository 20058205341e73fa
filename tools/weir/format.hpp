// SPDX-License-Identifier: MIT
// Times, durations, sizes and texts as a person reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <weir/duration.hpp>

namespace weir_tool {

/// 2030-01-01 00:00:00, by UTC.
std::string date_text(weir::wall_time at);
/// 2030-01-01T00:00:00.250000000Z: what --json gives, exact.
std::string iso_text(weir::wall_time at);
/// Three digits of the two largest units: 204 ms, 1.204 s, 12m 03s, 3h 02m, 2d 03h.
std::string span_text(weir::duration d);
/// 512 B, 1.2 KiB, 64 MiB.
std::string size_text(std::uint64_t bytes);
/// 1,234,567
std::string count_text(std::uint64_t n);
/// "1 run", "2 runs".
std::string counted(std::uint64_t n, std::string_view one);

/// Adds to a list that is separated by commas.
void add_words(std::string& to, std::string_view words);

/// A text from a journal, fit for a terminal: control characters and what is not UTF-8 are escaped,
/// so that it cannot change colours, move the cursor or break the line.
std::string plain(std::string_view text);
/// The same of a message, which in an encrypted journal without its key is seen as asterisks.
std::string plain_message(std::string_view text);
/// How many columns a plain text takes.
std::size_t width(std::string_view text) noexcept;
/// At most `columns` of it; what is cut is shown by an ellipsis.
std::string cut(const std::string& text, std::size_t columns);

/// What a JSON text is: object, array, string, number, bool, null; none if it is empty.
std::string_view json_type(std::string_view text) noexcept;

/// 90s, 15m, 36h, 7d, or several of them: 1d12h. False if the text is not of that form.
bool parse_duration(std::string_view text, weir::duration& into) noexcept;

}  // namespace weir_tool
