// SPDX-License-Identifier: MIT
#include "core/error_notes.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <typeinfo>
#include <unordered_map>

#include <unwind.h>

#include <weir/detail/core/fiber.hpp>

#include "core/function_name.hpp"
#include "core/takedown.hpp"

namespace weir::detail {

namespace {

/// The header that the C++ ABI puts before every thrown object; only `destroy` is used here.
struct exception_header {
  std::type_info* type;
  void (*destroy)(void*);
  void (*unexpected)();
  void (*terminate)();
  void* next;
  int handler_count;
  int handler_switch;
  const unsigned char* action_record;
  const unsigned char* language_data;
  _Unwind_Ptr catch_temporary;
  void* adjusted;
  _Unwind_Exception unwind;
};

struct kept_notes {
  bool left_a_frame = false;
  const char* own_function = nullptr;  // the last weir frame that it left
  void (*destroy)(void*) = nullptr;    // the exception's own destructor; may be null
  std::vector<error_note> notes;
  std::shared_ptr<takedown> why;
};

struct note_table {
  std::mutex mutex;
  std::unordered_map<void*, kept_notes> by_object;
};

note_table& table() {
  static note_table* const instance = new note_table;  // exceptions may outlive static objects
  return *instance;
}

void* object_of(const std::exception_ptr& error) noexcept {
  void* object = nullptr;
  static_assert(sizeof error == sizeof object);
  // An exception_ptr holds the address of its object; there is no other way to get it.
  // NOLINTNEXTLINE(bugprone-*)
  std::memcpy(&object, &error, sizeof object);
  return object;
}

// Called by the runtime instead of the exception's destructor.
void destroy_with_notes(void* object) {
  kept_notes last;
  {
    const std::lock_guard lock(table().mutex);
    const auto found = table().by_object.find(object);
    last = std::move(found->second);
    table().by_object.erase(found);
  }
  if (last.destroy != nullptr) last.destroy(object);
}

bool same_place(const error_note& a, const error_note& b) noexcept {
  return a.what == b.what && a.where.line() == b.where.line() &&
         std::strcmp(a.where.file_name(), b.where.file_name()) == 0 &&
         a.function.line() == b.function.line();
}

// REQUIRES: the table is locked.
kept_notes& entry_of(void* object) {
  auto [found, fresh] = table().by_object.try_emplace(object);
  kept_notes& kept = found->second;
  if (fresh) {
    auto* header = static_cast<exception_header*>(object) - 1;
    kept.destroy = header->destroy;
    header->destroy = destroy_with_notes;
  }
  return kept;
}

// A stored error may be rethrown any number of times, so duplicate notes are dropped.
void add(const std::exception_ptr& error, error_note note) noexcept {
  void* const object = object_of(error);
  if (object == nullptr) return;
  try {
    const std::lock_guard lock(table().mutex);
    kept_notes& kept = entry_of(object);
    if (note.what == error_note::kind::frame) {
      note.thrown = !std::exchange(kept.left_a_frame, true);
      if (note.function.function_name() == kept.own_function) return;
    }
    if (kept.notes.size() >= max_error_notes) return;
    const auto known = [&](const error_note& n) { return same_place(n, note); };
    if (std::any_of(kept.notes.begin(), kept.notes.end(), known)) return;
    // Parsing a name costs as much as all the rest, so it comes last.
    if (note.what == error_note::kind::frame && is_own_function(note.function.function_name())) {
      kept.own_function = note.function.function_name();
      return;
    }
    kept.notes.push_back(std::move(note));
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory for a note: the error itself is what matters.
  }
}

}  // namespace

std::string text_of(std::source_location at) {
  return std::string(at.file_name()).append(":").append(std::to_string(at.line()));
}

void note_frame(const std::exception_ptr& error, const frame& me) noexcept {
  add(error, {error_note::kind::frame, false, me.awaiting, me.function, {}});
}

void note_fiber(const std::exception_ptr& error, const fiber& f) noexcept {
  add(error, {error_note::kind::fiber, false, f.site, {}, f.name == nullptr ? "" : f.name});
}

void note_takedown(const std::exception_ptr& error, std::shared_ptr<takedown> why) noexcept {
  try {
    const std::lock_guard lock(table().mutex);
    entry_of(object_of(error)).why = std::move(why);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // No memory: the refusal is reported as it is.
  }
}

std::shared_ptr<takedown> takedown_of(const std::exception_ptr& error) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().by_object.find(object_of(error));
  return found == table().by_object.end() ? nullptr : found->second.why;
}

std::vector<error_note> notes_of(const std::exception_ptr& error) {
  const std::lock_guard lock(table().mutex);
  const auto found = table().by_object.find(object_of(error));
  return found == table().by_object.end() ? std::vector<error_note>() : found->second.notes;
}

}  // namespace weir::detail
