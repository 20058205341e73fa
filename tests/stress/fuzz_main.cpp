// SPDX-License-Identifier: MIT
#include "stress/fuzz_main.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "support/sanitizers.hpp"

#if WEIR_TEST_ASAN
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace fuzz {

namespace {

constexpr std::uint64_t failures_default = 3;

/// The program that runs now, for a process that dies of it: nothing else is safe to use then.
std::string now_running;

void print_now_running() {
  const auto written = write(STDERR_FILENO, now_running.data(), now_running.size());
  (void)written;
}
[[noreturn]] void on_signal(int number) {
  print_now_running();
  std::signal(number, SIG_DFL);
  std::raise(number);
  std::abort();
}

void print_when_dying() {
#if WEIR_TEST_ASAN
  __sanitizer_set_death_callback(print_now_running);
#else
  std::signal(SIGSEGV, on_signal);
  std::signal(SIGBUS, on_signal);
#endif
  std::signal(SIGABRT, on_signal);
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

bool run_seed(const fuzzed& what, std::uint64_t seed) {
  now_running = "\nthis program failed; WEIR_FUZZ_SEED=" + std::to_string(seed) +
                " and --gtest_filter=*" + what.name + "* repeat it:\n" + what.text(seed) + "\n";
  const std::string problem = what.run(seed);
  if (!problem.empty()) ADD_FAILURE() << problem << now_running;
  return problem.empty();
}

}  // namespace

void run_shard(const fuzzed& what, int shard) {
  print_when_dying();
  if (std::getenv("WEIR_FUZZ_SEED") != nullptr) {
    if (shard == 0) run_seed(what, from_environment("WEIR_FUZZ_SEED", 0));
    return;
  }
  const std::uint64_t first = from_environment("WEIR_FUZZ_FIRST", 1);
  const std::uint64_t count = from_environment("WEIR_FUZZ_SEEDS", what.seeds);
  std::uint64_t failures_left = from_environment("WEIR_FUZZ_FAILURES", failures_default);
  const std::uint64_t share = (count + shards - 1) / shards;
  const std::uint64_t begin = share * static_cast<std::uint64_t>(shard);
  for (std::uint64_t i = begin; i < std::min(begin + share, count); ++i) {
    if (!run_seed(what, first + i) && --failures_left == 0) break;
  }
  now_running.clear();
}

}  // namespace fuzz
