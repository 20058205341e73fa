// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include <weir/detail/core/frame_allocator.hpp>

namespace weir::detail {

/// A std::map that takes one pointer while it is empty. Its nodes, and the map itself, come from
/// the frame cache: entries may come and go with every step.
template <class K, class T>
class lazy_map {
  struct table : frame_allocated,
                 std::map<K, T, std::less<>, frame_allocator<std::pair<const K, T>>> {};

 public:
  using iterator = typename table::iterator;
  using const_iterator = typename table::const_iterator;

  bool empty() const noexcept { return table_ == nullptr; }
  std::size_t size() const noexcept { return table_ == nullptr ? 0 : table_->size(); }
  iterator begin() noexcept { return of().begin(); }
  iterator end() noexcept { return of().end(); }
  const_iterator begin() const noexcept { return of().begin(); }
  const_iterator end() const noexcept { return of().end(); }
  iterator find(const K& key) noexcept { return of().find(key); }
  const_iterator find(const K& key) const noexcept { return of().find(key); }
  bool contains(const K& key) const noexcept { return of().contains(key); }
  template <class... Args>
  std::pair<iterator, bool> emplace(Args&&... args) {
    return need().emplace(std::forward<Args>(args)...);
  }
  T& operator[](const K& key) { return need()[key]; }
  void erase(iterator at) noexcept {
    table_->erase(at);
    if (table_->empty()) table_.reset();
  }
  std::size_t erase(const K& key) noexcept {
    const iterator at = find(key);
    if (at == end()) return 0;
    erase(at);
    return 1;
  }

 private:
  table& of() const noexcept {
    static table none;  // stays empty
    return table_ == nullptr ? none : *table_;
  }
  table& need() {
    if (table_ == nullptr) table_ = std::make_unique<table>();
    return *table_;
  }

  std::unique_ptr<table> table_;  // null: empty
};

}  // namespace weir::detail
