// SPDX-License-Identifier: MIT
// A journal, and an engine with objects, through many power failures; ../planted/check.cmake links
// this with copies of the library in which a defect was planted, to see that the crash tests find
// it.
//
// Status: 0 if every promise holds, 1 if one does not.
#include <exception>
#include <iostream>

#include "durable/crash_model.hpp"
#include "durable/object_power.hpp"

namespace {

constexpr std::uint64_t journals = 1000;
constexpr std::uint64_t lives = 12;
constexpr std::uint64_t findings = 5;

constexpr std::uint64_t engines = 40;

/// The first findings are enough; one of them is printed.
std::uint64_t violations_of_engines() {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= engines && found < findings; ++seed) {
    journal_aid::object_power_model model(seed);
    try {
      for (std::uint64_t i = 0; i < lives; ++i) model.live_and_crash();
    } catch (const journal_aid::violation& v) {
      if (found++ == 0) std::cout << "engine, seed " << seed << ": " << v.what() << "\n";
    }
  }
  return found;
}

std::uint64_t violations_of_journals() {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= journals && found < findings; ++seed) {
    journal_aid::crash_model model(seed, seed % 4 < 2 ? 1 : 4096);
    if (seed % 2 == 0) model.set({.short_write = 0.1, .sync_error = 0.04});
    if (seed % 8 < 3 || seed % 8 == 7) model.compact();
    if (seed % 8 >= 6) model.encrypt(seed % 16 == 7 ? 4 : 1);
    if (seed % 8 == 2) model.encrypt();
    try {
      for (std::uint64_t i = 0; i < lives; ++i) model.live_and_crash();
    } catch (const journal_aid::violation& v) {
      if (found++ == 0) std::cout << "seed " << seed << ": " << v.what() << "\n";
    }
  }
  return found;
}

}  // namespace

int main() {
  const std::uint64_t found = violations_of_engines() + violations_of_journals();
  if (found == 0) {
    std::cout << "every promise holds\n";
    return 0;
  }
  std::cout << "a promise is broken in " << found << " of at most " << engines + journals
            << " journals\n";
  return 1;
}
