// SPDX-License-Identifier: MIT
// The errors of a journal: one text for each kind, with the file and what to do.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include <weir/error.hpp>

namespace weir::detail {

/// There is no space, and what was to be written may be written again.
struct no_room : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// errc::journal_corrupt, with its parts.
class corrupt_error : public error {
 public:
  corrupt_error(const std::string& file, std::uint64_t offset, const std::string& why);
  const std::string& file() const noexcept { return parts_->file; }
  std::uint64_t offset() const noexcept { return parts_->offset; }
  const std::string& why() const noexcept { return parts_->why; }

 private:
  struct parts {
    std::string file;
    std::uint64_t offset;
    std::string why;
  };
  std::shared_ptr<const parts> parts_;
};

/// Throws corrupt_error.
[[noreturn]] void raise_corrupt(const std::string& file, std::uint64_t offset,
                                const std::string& why);

/// Converts any error of a call on the journal's files: no space becomes errc::journal_full, errors
/// of weir stay unchanged, everything else becomes errc::journal_failed.
error journal_error(const std::string& directory, const std::exception_ptr& cause);

/// The same for a call that only reads: the journal has not failed.
error read_error(const std::string& directory, const std::exception_ptr& cause);

bool is_no_space(const std::exception& e) noexcept;

}  // namespace weir::detail
