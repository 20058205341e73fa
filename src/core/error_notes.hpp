// SPDX-License-Identifier: MIT
// Where an exception was thrown and which awaits it passed, stored beside it.
//
// Any exception can carry notes, whatever its type: they are kept in a table by the address of the
// exception object, and a hook in place of the exception's destructor erases the entry. So notes
// never keep an exception alive and never outlive it. This relies on the layout that the Itanium
// C++ ABI gives to exception headers; a test checks it on every supported compiler.
#pragma once

#include <exception>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <weir/detail/core/frame.hpp>

namespace weir::detail {

struct fiber;
class takedown;

struct error_note {
  enum class kind : std::uint8_t { frame, fiber };
  kind what;
  bool thrown;                    // a frame: the first one that the exception left
  std::source_location where;     // the await, or the spawn
  std::source_location function;  // of the frame
  std::string name;               // of the fiber
};

inline constexpr std::size_t max_error_notes = 32;

/// The exception leaves this frame. Frames of weir itself are not noted: the limit is for the
/// user's frames.
void note_frame(const std::exception_ptr& error, const frame& me) noexcept;
/// The exception ends this fiber.
void note_fiber(const std::exception_ptr& error, const fiber& f) noexcept;
std::vector<error_note> notes_of(const std::exception_ptr& error);
/// The exception is the refusal of an agent that its supervisor took down.
void note_takedown(const std::exception_ptr& error, std::shared_ptr<takedown> why) noexcept;
/// Null if it is not such a refusal.
std::shared_ptr<takedown> takedown_of(const std::exception_ptr& error);
/// "file:line".
std::string text_of(std::source_location at);

}  // namespace weir::detail
