// SPDX-License-Identifier: MIT
#include "durable/site_table.hpp"

namespace weir::detail {

site_record site_of(std::uint32_t number, std::source_location at) noexcept {
  const std::string_view path(at.file_name());
  return {number, at.line(), path.substr(path.rfind('/') + 1)};
}

// The name of a file is a constant of the program, so its address stands for it. Other addresses
// may have the same name, as those of an earlier process have: then the text decides.
site_table::numbered site_table::number_of(std::source_location at) {
  if (at.line() == 0) return {};
  const place here{at.file_name(), at.line()};
  if (const auto found = known_.find(here); found != known_.end()) return {found->second, false};
  const std::uint32_t next = entries_.empty() ? 1 : entries_.rbegin()->first + 1;
  const site_record made = site_of(next, at);
  if (const auto found = numbers_.find(made.text()); found != numbers_.end()) {
    known_.emplace(here, found->second);
    return {found->second, false};
  }
  if (next > sites_max) return {};
  see(made);
  known_.emplace(here, next);
  return {next, true};
}

void site_table::see(const site_record& r) {
  std::string text = r.text();
  numbers_.insert_or_assign(text, r.number);
  entries_.insert_or_assign(r.number, entry{std::move(text), r.line});
}

void site_table::clear() {
  known_.clear();
  numbers_.clear();
  entries_.clear();
}

std::string_view site_table::text(std::uint32_t number) const noexcept {
  const auto found = entries_.find(number);
  return found == entries_.end() ? std::string_view() : found->second.text;
}

site_record site_table::record_of(std::uint32_t number) const noexcept {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return {};
  const std::string_view text = found->second.text;
  return {number, found->second.line, text.substr(0, text.rfind(':'))};
}

}  // namespace weir::detail
