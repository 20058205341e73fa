// SPDX-License-Identifier: MIT
#include <weir/overflow.hpp>

#include <string>

#include <weir/error.hpp>

namespace weir::detail {

void raise_overflow(const char* object, overflow given, const char* supported) {
  constexpr const char* names[] = {"wait",     "reject",     "drop_oldest",  "drop_newest",
                                   "conflate", "disconnect", "fail_emitter", "stop"};
  const auto index = static_cast<std::size_t>(given);
  raise(errc::invalid_argument,
        std::string(object) + ": overflow::" + (index < std::size(names) ? names[index] : "?") +
            " is not supported; give " + supported);
}

}  // namespace weir::detail
