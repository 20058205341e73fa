// SPDX-License-Identifier: MIT
// Which temporaries a compiler destroys twice, or not at all, in a full-expression with an await:
// every kind of temporary as an argument of an awaited call, and one of each family in every
// position. Each cell is a coroutine that runs to its end, is destroyed while it is parked, and
// ends with an exception, each in a process of its own. Prints the name of each cell that went
// wrong; check.cmake compares that with the known defects of the compiler.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <tuple>

#include "coroutine.hpp"
#include "kinds.hpp"

// Where the temporary `t` stands. IN_own_statement is the advice of docs/compilers.md.
// clang-format off
#define IN_argument(t) n += co_await eat(t)
#define IN_own_statement(t) auto own = t; n += co_await eat(std::move(own))
#define IN_reference_argument(t) n += co_await eat_reference(t)
#define IN_second_argument(t) n += co_await eat(number(1, t))
#define IN_nested_argument(t) n += co_await eat(same(t))
#define IN_argument_of_an_operation(t) n += co_await operation_of(t)
#define IN_receiver(t) n += co_await operation_of(t).start()
#define IN_operand(t) n += co_await (left() | t)
#define IN_discarded_await(t) (void)co_await eat(t)
#define IN_before_an_await(t) n += number(t) + co_await one()
#define IN_after_an_await(t) n += co_await one() + number(t)
#define IN_beside_an_await(t) n += number(t, co_await one())
#define IN_around_an_await(t) n += co_await eat(number(co_await one(), t))
#define IN_two_awaits(t) n += co_await eat(t) + co_await eat(t)
#define IN_initializer(t) const item got = co_await exchange(t); n += *got.value
#define IN_reference_initializer(t) const item& got = co_await exchange(t); n += *got.value
#define IN_braced_initializer(t) const item got{co_await eat(t)}; n += *got.value
#define IN_structured_binding(t) const auto [a, b] = co_await paired(t); n += a
#define IN_result_used(t) n += *(co_await exchange(t)).value
#define IN_assignment(t) w = co_await exchange(t)
#define IN_if(t) if (co_await eat(t)) ++n
#define IN_if_compared(t) if (co_await eat(t) > n) ++n
#define IN_if_with_initializer(t) if (const int got = co_await eat(t); got > 1) ++n
#define IN_while(t) while (co_await eat(t) > n) ++n
#define IN_do_while(t) do { ++n; } while (co_await eat(t) > n)
#define IN_for_condition(t) for (int k = 0; co_await eat(t) > k; ++k) ++n
#define IN_for_step(t) for (int k = 0; k < 2; k += co_await eat(t)) ++n
#define IN_range_for(t) for (int k : co_await listed(t)) n += k
#define IN_switch(t) switch (co_await eat(t)) { case 1: ++n; break; default: --n; }
#define IN_logical_right(t) n += yes && co_await eat(t)
#define IN_logical_left(t) n += co_await eat(t) && yes
#define IN_logical_skipped(t) n += !yes && co_await eat(t)
#define IN_conditional_arm(t) n += yes ? co_await eat(t) : 7
#define IN_conditional_other_arm(t) n += !yes ? co_await eat(t) : 7
#define IN_conditional_test(t) n += co_await eat(t) ? 3 : 4
#define IN_comma(t) n += ((void)t, co_await one())
#define IN_try(t) try { n += co_await eat(t); } catch (int) { ++n; }
#define IN_loop(t) for (int k = 0; k < 2; ++k) n += co_await eat(t)
#define IN_capture(t) auto got = [x = co_await exchange(t)] { return *x.value; }; n += got()
#define IN_yielded(t) co_yield t
#define IN_yielded_await(t) co_yield co_await exchange(t)
#define IN_returned(t) co_return co_await eat(t)
#define IN_returned_beside_an_await(t) co_return co_await one() + number(t)
// Without an await in the full-expression.
#define IN_plain_return(t) co_return number(t)
#define IN_plain_condition(t) if (number(t)) n += co_await one()
#define IN_plain_range(t) for (int k : std::vector<int>(3, number(t))) n += k + co_await one()

#define POSITIONS(X) \
  X(own_statement) X(reference_argument) X(second_argument) X(nested_argument) \
  X(argument_of_an_operation) X(receiver) X(operand) X(discarded_await) X(before_an_await) \
  X(after_an_await) X(beside_an_await) X(around_an_await) X(two_awaits) X(initializer) \
  X(reference_initializer) X(braced_initializer) X(structured_binding) X(result_used) \
  X(assignment) X(if) X(if_compared) X(if_with_initializer) X(while) X(do_while) \
  X(for_condition) X(for_step) X(range_for) X(switch) X(logical_right) X(logical_left) \
  X(logical_skipped) X(conditional_arm) X(conditional_other_arm) X(conditional_test) X(comma) \
  X(try) X(loop) X(capture) X(yielded) X(yielded_await) X(returned) \
  X(returned_beside_an_await) X(plain_return) X(plain_condition) X(plain_range)
// clang-format on

#define PARAMETERS [[maybe_unused]] item v, [[maybe_unused]] item w, [[maybe_unused]] bool yes
#define CELL(position, kind, ...)                     \
  static task<int> position##_of_##kind(PARAMETERS) { \
    int n = 0;                                        \
    IN_##position((__VA_ARGS__));                     \
    co_return n;                                      \
  }
// The third rule of docs/compilers.md: this one has no local variable.
#define CELL_WITHOUT_LOCALS(position, kind, ...)      \
  static task<int> position##_of_##kind(PARAMETERS) { \
    if (co_await eat(__VA_ARGS__)) co_return 1;       \
    co_return 2;                                      \
  }
#define STATEMENT_CELL(name, ...)                    \
  static task<int> statement_of_##name(PARAMETERS) { \
    int n = 0;                                       \
    __VA_ARGS__;                                     \
    co_return n;                                     \
  }
#define ARGUMENT_CELL(kind, ...) CELL(argument, kind, __VA_ARGS__)
#define CELLS_AT(position) SOME_KINDS(CELL, position)

ALL_KINDS(ARGUMENT_CELL)
POSITIONS(CELLS_AT)
SOME_KINDS(CELL_WITHOUT_LOCALS, if_without_locals)
STATEMENTS(STATEMENT_CELL)

namespace {

struct cell {
  const char* name;
  task<int> (*start)(item, item, bool);
};
#define ROW(position, kind, ...) {#position " " #kind, position##_of_##kind},
#define ARGUMENT_ROW(kind, ...) ROW(argument, kind, __VA_ARGS__)
#define STATEMENT_ROW(name, ...) ROW(statement, name, __VA_ARGS__)
#define ROWS_AT(position) SOME_KINDS(ROW, position)
constexpr cell cells[] = {ALL_KINDS(ARGUMENT_ROW) POSITIONS(ROWS_AT)
                              SOME_KINDS(ROW, if_without_locals) STATEMENTS(STATEMENT_ROW)};

enum class way { finished, destroyed, destroyed_later, thrown };
constexpr int steps_max = 100;

/// Whether the coroutine went wrong in a way that AddressSanitizer does not see.
bool goes_wrong(const cell& tested, way how) {
  throwing = how == way::thrown;
  {
    const task<int> t = tested.start(item(10), item(20), true);
    parked = t.frame;
    for (int steps = 0; !t.frame.done(); ++steps) {
      if (how == way::destroyed && steps == 2) break;        // begun, and its first child parked
      if (how == way::destroyed_later && steps == 4) break;  // the next one, if it has several
      if (steps > steps_max || !parked) return true;
      std::exchange(parked, nullptr).resume();
    }
  }
  return item::live != 0;
}

bool goes_wrong_in_a_process(const cell& tested, way how) {
  const pid_t child = fork();
  if (child == 0) {
    (void)std::freopen("/dev/null", "w", stderr);
    alarm(60);
    _exit(goes_wrong(tested, how) ? 1 : 0);
  }
  int status = 0;
  return waitpid(child, &status, 0) != child || status != 0;
}

}  // namespace

int main() {
  for (const cell& tested : cells) {
    bool wrong = false;
    for (const way how : {way::finished, way::destroyed, way::destroyed_later, way::thrown})
      wrong = wrong || goes_wrong_in_a_process(tested, how);
    if (wrong) std::puts(tested.name);
    (void)std::fflush(stdout);
  }
}
