// SPDX-License-Identifier: MIT
#include "table.hpp"

#include <algorithm>
#include <utility>

#include "format.hpp"

namespace weir_tool {

namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t narrowest = 24;  // of a column that is cut
constexpr std::size_t widest = 80;  // of a column before the last one: an id may be of any length

std::string padded(const std::string& text, std::size_t to, bool right) {
  const std::size_t n = width(text);
  const std::string blanks(n < to ? to - n : 0, ' ');
  return right ? blanks + text : text + blanks;
}

}  // namespace

table::table(std::vector<column> columns) : columns_(std::move(columns)) {}

void table::row(std::vector<cell> cells) {
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) cells[i].text = cut(cells[i].text, widest);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> table::widths() const {
  std::vector<std::size_t> all(columns_.size(), 0);
  for (const auto& r : rows_)
    for (std::size_t i = 0; i < r.size(); ++i) all[i] = std::max(all[i], width(r[i].text));
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != 0) all[i] = std::max(all[i], columns_[i].title.size());
  return all;
}

table::layout table::lay_out(std::size_t columns) const {
  layout l{.wide = widths()};
  for (std::size_t i = 0; i < l.wide.size(); ++i)
    if (l.wide[i] != 0) l.last = i;
  std::size_t before = 0;
  for (std::size_t i = 0; i < l.last; ++i) before += l.wide[i] == 0 ? 0 : l.wide[i] + gap;
  l.room = columns > before ? columns - before : 0;
  return l;
}

void table::print_row(console& to, const layout& l, const std::vector<cell>& cells) const {
  std::string line;
  for (std::size_t i = 0; i < l.last; ++i) {
    if (l.wide[i] == 0) continue;
    const std::string text = padded(cells[i].text, l.wide[i], columns_[i].right);
    line += to.tint(text, cells[i].with) + std::string(gap, ' ');
  }
  const cell& last = cells[l.last];
  const bool apart = width(last.text) > l.room && l.room < narrowest;
  if (!apart)
    line += to.tint(
        columns_[l.last].right ? padded(last.text, l.wide[l.last], true) : cut(last.text, l.room),
        last.with);
  line.erase(line.find_last_not_of(' ') + 1);
  to.line(line);
  if (apart)
    to.line(std::string(2 * gap, ' ') +
            to.tint(cut(last.text, std::max(to.columns(), narrowest) - 2 * gap), last.with));
}

void table::print(console& to) const {
  if (rows_.empty()) return;
  const layout l = lay_out(to.columns());
  std::vector<cell> titles;
  for (const column& c : columns_) titles.push_back({c.title, ink::dim});
  if (l.room < width(titles[l.last].text)) titles[l.last].text.clear();
  print_row(to, l, titles);
  for (const auto& r : rows_) print_row(to, l, r);
}

}  // namespace weir_tool
