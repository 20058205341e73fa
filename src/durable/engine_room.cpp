// SPDX-License-Identifier: MIT
// A disk without room for the journal: refusing new runs, and looking for room.
#include "durable/engine_core.hpp"

namespace weir::detail {

bool engine_core::lacks_room() const noexcept {
  return running() && (stalled_ != nullptr || journal_->short_of_space());
}

void engine_core::require_room() const {
  if (!lacks_room()) return;
  raise(errc::journal_full,
        "no space for the journal '" + setup_.path +
            "': runs that have begun continue, new ones are refused until there "
            "is room; free some on its disk");
}

// Retries a batch that had no room; otherwise commits a batch, even an empty one, to prepare the
// next segment.
void engine_core::look_for_room() noexcept {
  if (!lacks_room() || (committing_ && stalled_ == nullptr)) return;
  committing_ = true;
  try {
    std::unique_ptr<journal_batch> batch = std::move(stalled_);
    if (batch == nullptr) {
      batch = journal_->take_to_look_for_room();
      taken_lsn_ = journal_->last_lsn();
    }
    writer_->write(std::move(batch));
  } catch (...) {
    committing_ = false;
    break_down(std::current_exception());
  }
}

void engine_core::room_looked_for() noexcept {
  if (looked_for_room_.is_set() && !lacks_room() && !room_clock_.armed()) return;
  const in_loop outside(host_);
  looked_for_room_.set();
  if (room_clock_.armed()) host_.cancel_deadline(room_clock_);
  const bool was_full = std::exchange(full_, lacks_room());
  if (full_ && !shutting_down_)
    host_.arm_deadline(room_clock_, saturating_add(host_.now(), room_interval), host_.next_order());
  if (full_ && !was_full) host_.emit("journal_full", setup_.path);
}

task<> engine_core::find_room() {
  const std::shared_ptr<engine_core> self = shared_from_this();
  looked_for_room_.reset();
  look_for_room();
  if (lacks_room()) co_await looked_for_room_.wait();
}

}  // namespace weir::detail
