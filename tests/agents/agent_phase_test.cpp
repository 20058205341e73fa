// SPDX-License-Identifier: MIT
// The life cycle of an agent: the table that agent_phase.hpp draws is the one that it computes.
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <weir/detail/agents/agent_phase.hpp>

namespace {

using weir::detail::agent_phase;
using weir::detail::life_event;
using weir::detail::may_happen;
using weir::detail::phase_after;

constexpr std::array<const char*, 15> names{
    "unborn",  "unborn_stopped", "coming", "coming_stopped", "coming_cut", "starting",
    "idle",    "running",        "ending", "draining",       "drained",    "cut",
    "between", "shut",           "over"};
constexpr std::array<life_event, 7> columns{
    life_event::request, life_event::born, life_event::handle, life_event::pause,
    life_event::wind_up, life_event::stop, life_event::cut};

const char* const drawing = R"(
    coming      starting  x       x      x        unborn_stopped  .
    coming_stopped draining x     x      x        .               .
    .           starting  x       x      x        coming_stopped  coming_cut
    .           draining  x       x      x        .               coming_cut
    .           cut       x       x      x        .               .
    x           x         running idle   ending   draining        cut
    x           x         running idle   ending   draining        cut
    x           x         running idle   ending   draining        cut
    x           x         running idle   ending   draining        cut
    x           x         .       .      .        .               cut
    x           x         .       .      .        .               cut
    x           x         .       .      .        .               .
    coming      starting  .       .      .        unborn_stopped  .
    coming      starting  .       .      .        .               .
    .           .         .       .      .        .               .
)";

agent_phase phase(std::size_t i) { return static_cast<agent_phase>(i); }

}  // namespace

TEST(agent_phase, follows_the_table) {
  std::istringstream rows(drawing);
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const life_event e : columns) {
      std::string cell;
      ASSERT_TRUE(rows >> cell);
      const std::string at =
          std::string(names[i]) + ", event " + std::to_string(static_cast<int>(e));
      EXPECT_EQ(may_happen(phase(i), e), cell != "x") << at;
      if (cell == "x") continue;
      const auto after = static_cast<std::size_t>(phase_after(phase(i), e));
      EXPECT_EQ(std::string(names.at(after)), cell == "." ? names[i] : cell) << at;
    }
  }
}

TEST(agent_phase, is_decided_by_the_owner_in_every_phase_but_the_last) {
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    EXPECT_EQ(phase_after(phase(i), life_event::expect), agent_phase::between) << names[i];
    EXPECT_EQ(phase_after(phase(i), life_event::shut), agent_phase::shut) << names[i];
  }
  EXPECT_EQ(phase_after(agent_phase::over, life_event::expect), agent_phase::over);
  EXPECT_EQ(phase_after(agent_phase::over, life_event::shut), agent_phase::over);
}

TEST(agent_phase, of_every_life_ends_between_two_lives) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const agent_phase p = phase(i);
    const bool lives = weir::detail::has_life(p);
    EXPECT_EQ(may_happen(p, life_event::end), p >= agent_phase::starting) << names[i];
    if (lives) {
      EXPECT_EQ(phase_after(p, life_event::end), agent_phase::between) << names[i];
    }
    EXPECT_EQ(may_happen(p, life_event::drained), p == agent_phase::draining) << names[i];
    EXPECT_EQ(may_happen(p, life_event::finish), p >= agent_phase::shut) << names[i];
  }
  EXPECT_EQ(phase_after(agent_phase::draining, life_event::drained), agent_phase::drained);
  EXPECT_EQ(phase_after(agent_phase::shut, life_event::finish), agent_phase::over);
}
