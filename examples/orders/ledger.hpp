// SPDX-License-Identifier: MIT
// The world outside, as a file: what the warehouse, the bank and the carrier have really done. The
// journal is what weir knows; this is what happened, so one can be checked against the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shop {

struct entry {
  std::int64_t at_ms = 0;  ///< system time
  int life = 0;            ///< which process did it
  bool again = false;      ///< it had been done before, so nothing happened
  std::string what;
  std::string order;
  std::string detail;
};

/// Everything in the file, in order; nothing if there is no file.
std::vector<entry> read_ledger(const std::filesystem::path& file);

/// An append-only file with one line for each effect.
///
/// A step of weir runs *at least* once: a process may die after the bank has booked and before the
/// journal knows. So whoever is called gets a key (here: what is done, and the order), and does
/// nothing if it has done that before. It still leaves a line, marked "again", for the summary.
///
/// Each line is one write() to a file opened with O_APPEND, and not synced: what the kernel has
/// taken survives the death of the process, which is what this program plays. (The journal is
/// synced: it also survives the death of the machine.)
class ledger {
 public:
  ledger(const std::filesystem::path& file, int life);
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;
  ~ledger();

  /// True: done now. False: it had been done.
  bool enter(std::string_view what, const std::string& order, std::string_view detail = {});
  bool has(std::string_view what, const std::string& order) const {
    return done_.contains({std::string(what), order});
  }
  /// What happened to this order, in all lives.
  const std::vector<entry>& lines_of(const std::string& order) const;
  /// The ids of all orders that were submitted, oldest first.
  const std::vector<std::string>& orders() const noexcept { return orders_; }

 private:
  void keep(entry e);

  std::filesystem::path file_;
  int life_;
  int fd_;
  std::set<std::pair<std::string, std::string>> done_;
  std::map<std::string, std::vector<entry>> lines_;
  std::vector<std::string> orders_;
};

}  // namespace shop
