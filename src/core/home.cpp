// SPDX-License-Identifier: MIT
#include "core/home.hpp"

#include <weir/detail/core/run_rules.hpp>
#include <weir/error.hpp>

#include "core/loop.hpp"

namespace weir::detail {

std::mutex& home_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string text_of(const object_name& object) {
  std::string text(object.kind);
  text.append(" '").append(object.name.empty() ? "unnamed" : object.name).append("'");
  return text;
}

void home::settle(const object_name& whose, const char* across, bool needs_loop) {
  const std::uint32_t here = current_loop_serial();
  if (here == 0 && needs_loop) raise_no_current_fiber(whose.kind);
  const door_ref lives = serial_ == 0 ? nullptr : door_table::find_serial(serial_);
  require_same_run(serial_, text_of(whose));
  if (lives != nullptr) {
    std::string text = text_of(whose);
    text.append(" of loop '").append(lives->name()).append("' used ");
    if (here == 0) {
      text.append("outside any loop");
    } else {
      text.append("on loop '").append(loop::here()->own_door().name()).append("'");
    }
    raise(errc::wrong_loop, text.append("; ").append(across).append(" across loops"));
  }
  if (here == 0) return;
  const std::lock_guard lock(home_mutex());
  serial_ = here;
}

}  // namespace weir::detail
