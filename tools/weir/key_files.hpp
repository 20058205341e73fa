// SPDX-License-Identifier: MIT
// The keys of encrypted journals, from files: 32 bytes, or 64 hexadecimal digits and at most a line
// feed. Wiped when they are destroyed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "durable/payload_keys.hpp"

namespace weir_tool {

class key_files {
 public:
  /// Errors: errc::invalid_argument if a file cannot be read or holds no key.
  explicit key_files(const std::vector<std::string>& names);
  key_files(const key_files&) = delete;
  key_files& operator=(const key_files&) = delete;
  ~key_files();

  /// The first one; empty if there is none.
  std::string_view present() const noexcept;
  /// The others. Views, valid as long as this object.
  std::vector<std::string_view> old() const;
  /// All of them; null if there are none.
  std::shared_ptr<const weir::detail::key_ring> ring() const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace weir_tool
