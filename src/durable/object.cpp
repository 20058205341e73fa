// SPDX-License-Identifier: MIT
#include "durable/object.hpp"

namespace weir::detail {

namespace {

std::string id_in_table(std::string_view name, std::string_view key) {
  return std::string(name).append(1, '\0').append(key);
}

}  // namespace

durable_object* object_table::find(std::string_view name, std::string_view key) {
  const auto found = all_.find(id_in_table(name, key));
  return found == all_.end() ? nullptr : &found->second;
}

// New ones come first, so a walk that is under way does not meet them.
durable_object& object_table::get(std::string_view name, std::string_view key) {
  const auto [at, made] = all_.try_emplace(id_in_table(name, key));
  durable_object& object = at->second;
  if (!made) return object;
  object.name = name;
  object.key = key;
  object.next = first_;
  if (first_ != nullptr) first_->previous = &object;
  first_ = &object;
  return object;
}

void object_table::erase(durable_object& object) {
  if (walk_ == &object) walk_ = object.next;
  if (object.next != nullptr) object.next->previous = object.previous;
  (object.previous != nullptr ? object.previous->next : first_) = object.next;
  all_.erase(id_in_table(object.name, object.key));
}

void object_table::clear() noexcept {
  all_.clear();
  first_ = walk_ = nullptr;
}

durable_object* object_table::walk() noexcept {
  durable_object* const object = walk_;
  if (object != nullptr) walk_ = object->next;
  return object;
}

}  // namespace weir::detail
