// SPDX-License-Identifier: MIT
#include "core/short_mutex.hpp"

#include "core/spinner.hpp"

namespace weir::detail {

void short_mutex::lock_slowly() noexcept {
  constexpr int polls = 64;  // about a microsecond
  for (int i = 0; i < polls; ++i) {
    pause_processor();
    if (word_.load(std::memory_order_relaxed) == free && take()) return;
  }
  while (word_.exchange(contended, std::memory_order_acquire) != free)
    futex::sleep(word_, contended, -1);
}

}  // namespace weir::detail
