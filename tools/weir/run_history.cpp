// SPDX-License-Identifier: MIT
#include "run_history.hpp"

namespace weir_tool {

using namespace weir::detail;

std::optional<weir::error> history::read(journal_reader& from, run_index& index, console& to) {
  indexing_visitor into(to, index);
  into.on_restart([this] { clear(); });
  into.on_record([this](const seen_record& r) { see(r); });
  return read_until_damage(from, into);
}

void history::clear() {
  number_ = 0;
  records_.clear();
  children_.clear();
}

void history::see(const seen_record& r) {
  if (r.run == nullptr) return;
  const record_kind* kind = kind_of_record(r.head.type);
  const bool starts = kind != nullptr && kind->role == record_role::starts;
  if (starts && (r.run->id == name_ || "#" + std::to_string(r.run->number) == name_)) {
    clear();
    number_ = r.run->number;
  }
  if (r.run->number == number_) {
    records_.push_back({r.head, std::string(r.payload), r.lsn});
  } else if (starts && number_ != 0) {
    each_started_run(r.head, r.payload, [&](std::uint64_t, const start_record& s) {
      if (s.parent == number_) children_[s.parent_command] = s.id;
    });
  }
}

std::string history::child(std::uint64_t command) const {
  const auto found = children_.find(command);
  return found == children_.end() ? std::string() : found->second;
}

}  // namespace weir_tool
