// SPDX-License-Identifier: MIT
#include <weir/http/event.hpp>

#include <weir/error.hpp>

namespace weir::http {

namespace {

void require_line(std::string_view text, const char* what) {
  if (text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos) return;
  throw error(errc::invalid_argument,
              "the " + std::string(what) + " of an event has a line break or a NUL");
}

/// Takes the first line off; a line ends with CR LF, CR or LF, as clients read it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find_first_of("\r\n");
  const std::string_view line = text.substr(0, end);
  if (end == text.npos) {
    text = {};
  } else {
    text.remove_prefix(end + (text.substr(end, 2) == "\r\n" ? 2 : 1));
  }
  return line;
}

}  // namespace

event::event(std::string_view name, std::string_view data) : name_(name), data_(data) {
  require_line(name, "name");
  if (data.find('\0') != data.npos)
    throw error(errc::invalid_argument, "the data of event '" + name_ + "' has a NUL; encode it");
}

void event::set_id(std::string_view text) {
  require_line(text, "id");
  id_ = text;
}

std::string event::text() const {
  std::string out;
  out.reserve(name_.size() + data_.size() + id_.size() + 32);
  if (!id_.empty()) out.append("id: ").append(id_) += '\n';
  if (!name_.empty()) out.append("event: ").append(name_) += '\n';
  std::string_view rest = data_;
  const bool open = !rest.empty() && (rest.back() == '\n' || rest.back() == '\r');
  do {
    out.append("data: ").append(take_line(rest)) += '\n';
  } while (!rest.empty());
  if (open) out += "data: \n";
  return out += '\n';
}

}  // namespace weir::http
