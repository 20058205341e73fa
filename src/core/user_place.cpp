// SPDX-License-Identifier: MIT
#include "core/user_place.hpp"

#include <algorithm>
#include <iterator>

#include "core/cancel_tree.hpp"
#include "core/error_notes.hpp"

namespace weir::detail {

namespace {

/// The common path prefix of the library's source files.
constexpr std::string_view source_root() noexcept {
  constexpr std::string_view me = __FILE__;
  constexpr std::string_view name = "core/user_place.cpp";
  return me.ends_with(name) ? me.substr(0, me.size() - name.size()) : me;
}

}  // namespace

// The prefix alone is not enough: it may be relative, and then the user's files may share it.
bool is_library_file(std::string_view file) noexcept {
  if (file.find("include/weir/") != std::string_view::npos) return true;
  if (!file.starts_with(source_root())) return false;
  file.remove_prefix(source_root().size());
  constexpr std::string_view layers[] = {"core/",   "toolkit/", "flow/",
                                         "agents/", "sim/",     "durable/"};
  return std::any_of(std::begin(layers), std::end(layers),
                     [&](std::string_view layer) { return file.starts_with(layer); });
}

// Skips policies and combinators, which are coroutines in library files, to find the user's code.
// If all frames are the library's, the place is where the user spawned the fiber.
std::source_location user_place(const strand& s) noexcept {
  const frame* user = s.leaf;
  while (user != nullptr && is_library_file(user->function.file_name())) user = user->parent;
  if (user != nullptr) return user->awaiting.line() == 0 ? user->function : user->awaiting;
  const fiber* f = s.top == nullptr ? nullptr : cancel_tree::fiber_of(*s.top);
  if (f != nullptr && f->site.line() != 0 && !is_library_file(f->site.file_name())) return f->site;
  if (s.leaf == nullptr) return {};
  return s.leaf->awaiting.line() == 0 ? s.leaf->function : s.leaf->awaiting;
}

std::source_location running_user_place() noexcept {
  return current == nullptr ? std::source_location() : user_place(*current);
}

namespace {

std::string place_text(std::source_location at) {
  return at.line() == 0 ? "an unknown place" : text_of(at);
}

}  // namespace

std::string place_in(const strand& s) { return place_text(user_place(s)); }

std::string running_place() { return place_text(running_user_place()); }

}  // namespace weir::detail
