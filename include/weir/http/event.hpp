// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace weir::http {

/// A server-sent event. Data of several lines is sent as several lines. A line break in the name or
/// in the id, and a NUL anywhere, would break the stream of events: errc::invalid_argument.
class event {
 public:
  /// An empty name is the default one, "message".
  event(std::string_view name, std::string_view data);

  /// The id that a client sends back (`last-event-id`) when it connects again.
  event& id(std::string_view text) & {
    set_id(text);
    return *this;
  }
  event&& id(std::string_view text) && {
    set_id(text);
    return std::move(*this);
  }

  const std::string& name() const noexcept { return name_; }
  const std::string& data() const noexcept { return data_; }
  const std::string& id() const noexcept { return id_; }
  /// As it is sent.
  std::string text() const;

 private:
  void set_id(std::string_view text);

  std::string name_;
  std::string data_;
  std::string id_;
};

}  // namespace weir::http
