// SPDX-License-Identifier: MIT
#include "durable/journal_reader.hpp"

#include <system_error>
#include <utility>

#include "durable/journal_error.hpp"

namespace weir::detail {

namespace {

/// Upper bound on reads that each find something else: files change faster than they are read.
constexpr int reads_max = 100;

/// What a compaction or a repair under the reader can look like.
bool may_be_change(const std::system_error& e) noexcept {
  return e.code() == errc::journal_corrupt || e.code() == std::errc::no_such_file_or_directory;
}

/// Hides the records that were seen before.
class later_records final : public journal_visitor {
 public:
  later_records(std::uint64_t from, record_reader& to) noexcept : from_(from), to_(to) {}
  void restart() override {}
  void see(const record_head& head, std::string_view payload, std::uint64_t lsn,
           record_place place) override {
    if (lsn < from_) return;
    to_.see(head, payload, lsn, place);
    from_ = lsn + 1;
  }

 private:
  std::uint64_t from_;
  record_reader& to_;
};

}  // namespace

journal_reader::journal_reader(weir::disk& disk, std::string directory,
                               std::shared_ptr<const key_ring> keys)
    : files_{&disk, std::move(directory), false}, keys_(std::move(keys)) {
  if (!files_.disk->exists(files_.directory))
    raise(errc::invalid_argument, "there is no journal '" + files_.directory + "'");
}

void journal_reader::read(journal_visitor& visitor) {
  std::string found_before;
  for (int i = 1;; ++i) {
    visitor.restart();
    auto log = std::make_unique<recovery>(files_, segment_bytes_min, journal_secret{}, keys_);
    try {
      log->look(visitor);
      log_ = std::move(log);
      return;
    } catch (const std::system_error& e) {
      if (!may_be_change(e) || e.what() == found_before || i == reads_max) {
        if (dynamic_cast<const error*>(&e) != nullptr) throw;
        throw error(journal_error(files_.directory, std::current_exception()));
      }
      found_before = e.what();
    }
  }
}

bool journal_reader::follow(record_reader& reader) {
  const std::uint64_t known = log_->view().next_lsn;
  try {
    return log_->follow(reader);
  } catch (const std::system_error& e) {
    if (!may_be_change(e)) throw;
  }
  later_records later(log_->view().next_lsn, reader);
  read(later);
  return log_->view().next_lsn > known;
}

}  // namespace weir::detail
