// SPDX-License-Identifier: MIT
// Bounded stack: nesting has a limit, and up to it a small stack is enough.
#include "serde_support.hpp"
#include "support/small_stack.hpp"

using namespace weir_test;
using weir::detail::json_depth_max;

namespace shop {

/// Reads any object.
struct nothing {};
WEIR_DESCRIBE(nothing)

}  // namespace shop

namespace {

using shop::nothing;

/// A tree whose JSON nests `levels` deep.
tree deep(std::size_t levels) {
  tree t;
  for (std::size_t i = 1; i < levels; ++i) {
    tree outer;
    outer.next = std::make_unique<tree>(std::move(t));
    t = std::move(outer);
  }
  return t;
}

/// Each tree in another kind of container; every round nests seven levels deeper.
tree deep_in_all_ways(std::size_t levels) {
  tree t;
  for (std::size_t i = 0; i + 7 <= levels; i += 7) {
    tree in_variant;
    in_variant.extra.emplace<3>().push_back(std::move(t));
    tree in_map;
    in_map.named.emplace("x", std::move(in_variant));
    tree in_vector;
    in_vector.kids.push_back(std::move(in_map));
    t = std::move(in_vector);
  }
  return t;
}

std::string brackets(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST(serde_stack, values_up_to_the_limit_of_nesting_are_written_and_read) {
  on_a_small_stack([] {
    // The innermost tree holds an empty array, which is a level, too.
    const std::string text = encode(deep(json_depth_max - 1));
    EXPECT_EQ(encode(decode<tree>(text)), text);
  });
}

TEST(serde_stack, nesting_through_every_container_needs_no_more) {
  on_a_small_stack([] {
    const std::string text = encode(deep_in_all_ways(json_depth_max - 2));
    EXPECT_EQ(encode(decode<tree>(text)), text);
  });
}

TEST(serde_stack, values_beyond_the_limit_of_nesting_are_refused) {
  on_a_small_stack([] {
    const auto error = thrown_by([] { return encode(deep(json_depth_max)); });
    EXPECT_EQ(code_of(error), errc::too_large);
    EXPECT_TRUE(contains(what_of(error), "nests more than 128 levels")) << what_of(error);
  });
}

TEST(serde_stack, texts_beyond_the_limit_of_nesting_are_bad_data) {
  on_a_small_stack([] {
    EXPECT_EQ(bad_data<nothing>("{\"x\":" + brackets(json_depth_max - 1) + "}"), "");
    for (const std::size_t levels : {json_depth_max, std::size_t{1'000'000}})
      EXPECT_TRUE(contains(bad_data<nothing>("{\"x\":" + brackets(levels) + "}"),
                           "nests more than 128 levels"));
    EXPECT_NE(bad_data<tree>(std::string(1'000'000, '[')), "");
  });
}
