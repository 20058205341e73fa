// SPDX-License-Identifier: MIT
// Waits that refuse or delay their withdrawal, and a count of the events they cause.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scope_support.hpp"

namespace weir_test {

template <class T>
using held = std::vector<weir::resumer<T>>;

/// A wait that leaves its resumer in `answers` and answers `how` when it is asked to stop.
template <class T>
auto asked_it_says(weir::cancel_result how, held<T>& answers) {
  return weir::suspend<T>([&answers, how](weir::resumer<T> r) {
    answers.push_back(std::move(r));
    return [how] { return how; };
  });
}

/// The same, but asked to stop it completes there and then.
inline auto asked_it_completes(weir::cancel_result how, std::optional<weir::resumer<int>>& answer,
                               int value) {
  return weir::suspend<int>([&answer, how, value](weir::resumer<int> r) {
    answer.emplace(std::move(r));
    return [&answer, how, value] {
      answer->complete(value);
      return how;
    };
  });
}

/// Counts the events of one name.
class event_count {
 public:
  explicit event_count(std::string_view name)
      : subscription_(weir::on_event(counter{name, &count_})) {}
  int get() const { return count_; }

 private:
  struct counter {
    std::string_view name;
    int* count;
    void operator()(const weir::event_info& e) const { *count += e.name == name ? 1 : 0; }
  };
  int count_ = 0;
  decltype(weir::on_event(std::declval<counter>())) subscription_;
};

}  // namespace weir_test
