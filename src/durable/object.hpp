// SPDX-License-Identifier: MIT
// The keys of objects, as the engine knows them: state and inbox.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weir/detail/core/run_seam.hpp>
#include <weir/duration.hpp>

namespace weir::detail {

class durable_run;

/// Encoded values by name.
using stored_values = std::map<std::string, std::string, std::less<>>;

/// The place of a turn in its inbox: the number of the last run that was started before it joined,
/// then its number among the delayed runs that have joined an inbox; 0: it joined with its start.
struct inbox_place {
  std::uint64_t after = 0;
  std::uint64_t joined = 0;
  auto operator<=>(const inbox_place&) const = default;
};

/// One key of an object. It exists while it has state or unfinished runs.
///
/// Invariants:
/// 1. `inbox` has the unfinished exclusive runs that have joined it, in order. The first one has
///    the turn, until its end is recorded; the others have not begun.
/// 2. `state` is what the turns have left whose ends are recorded; it is changed by the record of a
///    turn, and by nothing in between.
struct durable_object {
  std::string name;
  std::string key;
  stored_values state;
  std::map<inbox_place, durable_run*> inbox;
  std::uint64_t runs = 0;  // unfinished ones, shared and delayed ones included
  std::uint64_t lsn = 0;   // of the end of its last turn: later ones depend on it

  // In the table.
  durable_object* previous = nullptr;
  durable_object* next = nullptr;
};

/// All objects, found by name and key. They can be walked through in several calls, with changes in
/// between: a walk gives each object that is there from its beginning to its turn, once.
class object_table {
 public:
  object_table() = default;
  object_table(const object_table&) = delete;
  object_table& operator=(const object_table&) = delete;

  /// Null if there is none.
  durable_object* find(std::string_view name, std::string_view key);
  /// Makes it unless it is there.
  durable_object& get(std::string_view name, std::string_view key);
  void erase(durable_object& object);
  void clear() noexcept;

  void begin_walk() noexcept { walk_ = first_; }
  /// The next one of the walk; null at its end.
  durable_object* walk() noexcept;

 private:
  std::unordered_map<std::string, durable_object> all_;  // by name and key
  durable_object* first_ = nullptr;                      // the newest
  durable_object* walk_ = nullptr;                       // the next one of the walk
};

/// The part of an unfinished run in its object.
struct object_part {
  durable_object* of;
  bool shared;
  bool joined = false;  // its inbox; a delayed run joins when its delay is over
  bool waited = false;  // for its turn: the time at which it begins is recorded
  inbox_place place{};  // if it has joined
};

/// What a turn has done so far. It takes effect with the record of its end.
struct turn_work {
  struct sent {
    run_request request;
    wall_time begins;  // its time, and the delay
  };
  std::map<std::string, std::optional<std::string>, std::less<>> changes;  // empty: cleared
  stored_values reads;  // of committed values; an empty text: there was none
  std::vector<sent> sends;
  std::unordered_map<std::string, std::string> handlers;  // of the sends, by id
};

/// "key 'k1' of object 'cart'"
std::string text_of(const durable_object& object);
/// The object of a handler: "cart" of "cart/add".
std::string_view object_of_handler(std::string_view handler) noexcept;

}  // namespace weir::detail
