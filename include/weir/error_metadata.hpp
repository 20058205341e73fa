// SPDX-License-Identifier: MIT
// The metadata of a terminal_error. Not part of <weir/weir.hpp>, because <map> is expensive to
// include.
#pragma once

#include <map>
#include <string>

namespace weir {

class error_metadata : public std::map<std::string, std::string> {
 public:
  using std::map<std::string, std::string>::map;
};

namespace detail {

/// What a terminal_error carries besides its message.
struct terminal_facts {
  int status = 500;
  error_metadata metadata{};
};

}  // namespace detail
}  // namespace weir
