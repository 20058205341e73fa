// SPDX-License-Identifier: MIT
#include "durable/journal_error.hpp"

#include <cerrno>
#include <system_error>

#include "core/error.hpp"

namespace weir::detail {

corrupt_error::corrupt_error(const std::string& file, std::uint64_t offset, const std::string& why)
    : error(errc::journal_corrupt, "journal corrupt: '" + file + "' at offset " +
                                       std::to_string(offset) + ": " + why +
                                       "; nothing was changed, restore the file from a copy"),
      parts_(std::make_shared<const parts>(parts{file, offset, why})) {}

void raise_corrupt(const std::string& file, std::uint64_t offset, const std::string& why) {
  throw corrupt_error(file, offset, why);
}

bool is_no_space(const std::exception& e) noexcept {
  const auto* system = dynamic_cast<const std::system_error*>(&e);
  if (system == nullptr || system->code().category() != std::generic_category()) return false;
  return system->code() == std::errc::no_space_on_device ||
         system->code() == std::errc::file_too_large || system->code().value() == EDQUOT;
}

error journal_error(const std::string& directory, const std::exception_ptr& cause) {
  const std::string name = "journal '" + directory + "'";
  try {
    std::rethrow_exception(cause);
  } catch (const error& e) {
    return e;
  } catch (const std::exception& e) {
    if (is_no_space(e))
      return {errc::journal_full,
              name + " has no space: " + what_of(e) + "; free some on its disk and open it again"};
    return {errc::journal_failed,
            name + " failed: " + what_of(e) + "; check its disk and open it again"};
  } catch (...) {
    return {errc::journal_failed, name + " failed for an unknown reason; open it again"};
  }
}

error read_error(const std::string& directory, const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const error& e) {
    return e;
  } catch (const std::exception& e) {
    return {errc::journal_failed, "a file of the journal '" + directory + "' cannot be read: " +
                                      what_of(e) + "; nothing was changed, check its disk"};
  }
}

}  // namespace weir::detail
