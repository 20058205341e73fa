// SPDX-License-Identifier: MIT
// Types that are stored, and random values of them.
#pragma once

#include <weir/durable/serde.hpp>

#include "support/test_support.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace weir_test {

using namespace test_support;
using weir::errc;
using weir::detail::decode;
using weir::detail::encode;

/// Recursive in every way that a described type may be.
struct tree {
  std::string name;
  std::int64_t count = 0;
  double weight = 0;
  std::optional<std::string> note;
  std::variant<std::monostate, bool, std::uint64_t, std::vector<tree>> extra;
  std::vector<tree> kids;
  std::map<std::string, tree> named;
  std::unordered_map<int, std::string> words;
  std::unique_ptr<tree> next;
};
WEIR_DESCRIBE(tree, name, count, weight, note, extra, kids, named, words, next)

inline std::string random_bytes(std::mt19937_64& random, std::size_t size_max) {
  std::string bytes(random() % (size_max + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

inline double random_finite(std::mt19937_64& random) {
  return static_cast<double>(static_cast<std::int64_t>(random())) / 1e9;
}

/// Requires: `levels` is small; the number of trees grows with it like a power.
inline tree random_tree(std::mt19937_64& random, int levels) {
  tree t;
  t.name = random_bytes(random, 6);
  t.count = static_cast<std::int64_t>(random());
  t.weight = random_finite(random);
  if (random() % 2 == 0) t.note = random_bytes(random, 3);
  for (auto n = random() % 4; n > 0; --n)
    t.words[static_cast<int>(random() % 100)] = random_bytes(random, 3);
  if (random() % 3 == 0) t.extra = true;
  if (random() % 3 == 0) t.extra = std::uint64_t{random()};
  if (levels == 0) return t;
  for (auto n = random() % 3; n > 0; --n) t.kids.push_back(random_tree(random, levels - 1));
  for (auto n = random() % 3; n > 0; --n)
    t.named.emplace(random_bytes(random, 2), random_tree(random, levels - 1));
  if (random() % 4 == 0) t.next = std::make_unique<tree>(random_tree(random, levels - 1));
  if (random() % 4 == 0) t.extra.emplace<3>().push_back(random_tree(random, levels - 1));
  return t;
}

/// The error of reading `text` as a `T`, or "" if it can be read.
template <class T>
std::string bad_data(std::string_view text) {
  const auto error = thrown_by([&] {
    static_cast<void>(decode<T>(text));
    return 0;
  });
  if (error == nullptr) return "";
  EXPECT_EQ(code_of(error), errc::bad_data) << what_of(error);
  return what_of(error);
}

}  // namespace weir_test
