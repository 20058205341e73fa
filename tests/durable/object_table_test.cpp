// SPDX-License-Identifier: MIT
// The table of objects: a walk through it in several calls, with changes in between.
#include <string>

#include <gtest/gtest.h>

#include "durable/object.hpp"

using weir::detail::durable_object;
using weir::detail::object_table;

namespace {

std::string walked(object_table& table, int at_most = 100) {
  std::string keys;
  while (at_most-- > 0) {
    const durable_object* const object = table.walk();
    if (object == nullptr) break;
    keys += object->key;
  }
  return keys;
}

}  // namespace

TEST(object_table, finds_what_was_made_until_it_is_erased) {
  object_table table;
  EXPECT_EQ(table.find("o", "k"), nullptr);
  durable_object& made = table.get("o", "k");
  EXPECT_EQ(&table.get("o", "k"), &made);
  EXPECT_EQ(table.find("o", "k"), &made);
  EXPECT_EQ(table.find("p", "k"), nullptr);
  table.erase(made);
  EXPECT_EQ(table.find("o", "k"), nullptr);
  table.begin_walk();
  EXPECT_EQ(table.walk(), nullptr);
}

TEST(object_table, a_walk_gives_each_object_once_whatever_is_made_and_erased_meanwhile) {
  object_table table;
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) (void)table.get("o", key);
  table.begin_walk();
  EXPECT_EQ(walked(table, 2), "fe");
  table.erase(*table.find("o", "d"));  // the next one
  table.erase(*table.find("o", "f"));  // one that was given
  table.erase(*table.find("o", "a"));  // the last one
  for (int i = 0; i < 1000; ++i) (void)table.get("o", "new" + std::to_string(i));
  EXPECT_EQ(walked(table), "cb");
  EXPECT_EQ(table.walk(), nullptr);
  table.begin_walk();
  EXPECT_EQ(walked(table, 1), "new999");
  table.clear();
  EXPECT_EQ(table.walk(), nullptr);
}
