// SPDX-License-Identifier: MIT
// CSV to JSON, line by line: a pipeline over a std::istream that holds one line at a time, however
// long the input is. Then the same rows in a plain `for`, without a loop of weir.

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weir/weir.hpp>
using weir::task;

namespace {

using row = std::vector<std::string>;
using numbered_row = std::pair<std::int64_t, row>;

row split(const std::string& line) {
  row cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

bool has_data(const std::string& line) { return !line.empty() && line[0] != '#'; }

/// A module's boundary: its users do not see what the stream is made of.
weir::any_stream<row> rows(std::istream& in) {
  return weir::lines(in) | weir::filter(has_data) | weir::map(split);
}

std::string to_object(const row& names, const numbered_row& from) {
  const auto& [number, cells] = from;
  if (cells.size() != names.size())
    throw std::runtime_error("row " + std::to_string(number + 1) + " has " +
                             std::to_string(cells.size()) + " cells");
  std::string object;
  for (std::size_t i = 0; i < cells.size(); ++i)
    object += (i == 0 ? "{\"" : ", \"") + names[i] + "\": \"" + cells[i] + '"';
  return object + "}";
}

// Nothing is read before the sink pulls; an error in a stage ends the stream and leaves the sink.
task<> convert(std::istream& in) {
  std::string header;
  std::getline(in, header);
  const row names = split(header);
  auto one = [&](const numbered_row& from) { return to_object(names, from); };
  auto print = [](const std::string& object) { std::printf("  %s\n", object.c_str()); };
  auto objects = rows(in) | weir::enumerate() | weir::map(one);
  co_await (std::move(objects) | weir::for_each(print));
}

task<> program() {
  std::puts("three rows");
  std::istringstream good(
      "city,country,people\n"
      "Lisbon,Portugal,545000\n"
      "# not counted yet: Porto\n"
      "Graz,Austria,292000\n"
      "\n"
      "Turku,Finland,197000\n");
  co_await convert(good);

  std::puts("a broken row");
  std::istringstream bad("city,country\nLisbon,Portugal\nGraz\nTurku,Finland\n");
  try {
    co_await convert(bad);
  } catch (const std::runtime_error& e) {
    std::printf("  %s\n", e.what());
  }
}

// A stream that does not wait can be used as a range.
void sum() {
  std::puts("a sum, without a loop");
  std::istringstream in("Lisbon,545000\nGraz,292000\n");
  int people = 0;
  for (const row& cells : weir::blocking_range(rows(in))) people += std::stoi(cells.at(1));
  std::printf("  %d people\n", people);
}

}  // namespace

int main() {
  weir::run(program());
  sum();
}
