// SPDX-License-Identifier: MIT
#include "ledger.hpp"

#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace shop {

namespace {

constexpr std::string_view again_mark = "again:";

entry parse(const std::string& line) {
  std::istringstream in(line);
  entry e;
  in >> e.at_ms >> e.life >> e.what >> e.order;
  std::getline(in >> std::ws, e.detail);
  e.again = e.what.starts_with(again_mark);
  if (e.again) e.what.erase(0, again_mark.size());
  return e;
}

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw std::system_error(errno, std::generic_category(), std::string(what) + file.string());
}

std::int64_t system_time_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

std::vector<entry> read_ledger(const std::filesystem::path& file) {
  std::vector<entry> all;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) all.push_back(parse(line));
  return all;
}

ledger::ledger(const std::filesystem::path& file, int life)
    : file_(file),
      life_(life),
      fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) fail(file_, "cannot open the ledger ");
  for (entry& e : read_ledger(file)) keep(std::move(e));
}

ledger::~ledger() { ::close(fd_); }

bool ledger::enter(std::string_view what, const std::string& order, std::string_view detail) {
  entry e;
  e.at_ms = system_time_ms();
  e.life = life_;
  e.again = has(what, order);
  e.what = what;
  e.order = order;
  e.detail = detail;
  std::ostringstream line;
  line << e.at_ms << ' ' << e.life << ' ' << (e.again ? again_mark : "") << what << ' ' << order;
  if (!detail.empty()) line << ' ' << detail;
  line << '\n';
  const std::string text = line.str();
  if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(file_, "cannot write to the ledger ");
  const bool first = !e.again;
  keep(std::move(e));
  return first;
}

const std::vector<entry>& ledger::lines_of(const std::string& order) const {
  static const std::vector<entry> none;
  const auto found = lines_.find(order);
  return found == lines_.end() ? none : found->second;
}

void ledger::keep(entry e) {
  const bool first = done_.emplace(e.what, e.order).second;
  if (first && e.what == "submit") orders_.push_back(e.order);
  std::vector<entry>& lines = lines_[e.order];
  lines.push_back(std::move(e));
}

}  // namespace shop
